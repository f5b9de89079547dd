# SPDX-License-Identifier: Apache-2.0
# C for schemas/example.proto, made by protoc-c in the build folder.
schemas/example.pb-c.c: schemas/example.proto
	$(AM_V_GEN)$(MKDIR_P) schemas && $(PROTOC_C) --c_out=schemas -I$(srcdir)/schemas $(srcdir)/schemas/example.proto
schemas/example.pb-c.h: schemas/example.pb-c.c

BUILT_SOURCES += schemas/example.pb-c.c schemas/example.pb-c.h
CLEANFILES += schemas/example.pb-c.c schemas/example.pb-c.h
schemasdir = $(pkgdatadir)/schemas
dist_schemas_DATA = schemas/example.proto schemas/convert.schema.json schemas/inspect.schema.json \
	schemas/manifest.schema.json schemas/metrics.schema.json schemas/README.md
