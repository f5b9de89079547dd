-- SPDX-License-Identifier: Apache-2.0
-- Lmod.  The file's name is the version; its folder is the one where chex-tools was unpacked or installed.
local root = pathJoin("/opt/chex-tools", myModuleVersion())
help([[Chest X-ray images as shards: chex-convert, chex-inspect, chex-predict, chex-synth and chex-train]])
whatis("Name: chex-tools")
whatis("Version: " .. myModuleVersion())
conflict("chex-tools")
prepend_path("PATH", pathJoin(root, "bin")) -- man(1) finds share/man next to it
if isDir(pathJoin(root, "lib/pkgconfig")) then -- a build from source has libchex too
    prepend_path("PKG_CONFIG_PATH", pathJoin(root, "lib/pkgconfig"))
    prepend_path("LD_LIBRARY_PATH", pathJoin(root, "lib"))
end
