#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The recipes of doc/weights.md: torchvision's weights into evaluate-split, and its files into torchvision's models.

    check_weights.py [PATTERN]      all cases need PyTorch, torchvision and safetensors, and run with CHEX_SLOW=1

ImageNet's weights are not downloaded: the recipe runs with random ones in their place, of the same names and shapes.
"""
import functools
import os
import re
import shutil
import sys

from support import SOURCE, Cases, cache_folder, program, python_with, read_csv, run, slurp, synth, write

case = Cases()
CACHE = cache_folder("weights")

# In Python with torch: random weights in which every tensor matters.
RANDOM = """
import torch, torchvision

def random_model(name, outputs):
    torch.manual_seed(11)
    model = getattr(torchvision.models, name)(num_classes=outputs)
    with torch.no_grad():
        for module in model.modules():
            if isinstance(module, torch.nn.BatchNorm2d):
                module.weight.uniform_(0.5, 1.0)
                module.bias.uniform_(-0.5, 0.5)
                module.running_mean.uniform_(-0.2, 0.2)
                module.running_var.uniform_(0.5, 1.5)
        last = model.classifier if name.startswith("densenet") else model.fc
        last.weight.mul_(4)
    return model
"""


@functools.lru_cache(None)
def dataset():
    folder, out = os.path.join(CACHE, "synthetic"), os.path.join(CACHE, "shards")
    labels = synth(folder, 60, "--size", "256")
    run([program("chex-convert"), "-q", "-i", f"{folder}/images", "-l", labels, "-o", out, "--shard-size", "8"])
    return out


@functools.lru_cache(None)
def recipes():
    text = slurp(os.path.join(SOURCE, "doc", "weights.md")).decode()
    return dict(re.findall(r"<!-- recipe: (\w+) -->\s*```python\n(.*?)```", text, re.S))


@functools.lru_cache(None)
def where_safetensors():
    """Behind everything else on the path of a Python with torch: it may be in another one's folder."""
    find = "import os, safetensors; print(os.path.dirname(os.path.dirname(safetensors.__file__)))"
    return run([python_with("safetensors"), "-c", find]).stdout.strip()


def python(work, script):
    head = f"import sys; sys.path.append({where_safetensors()!r})\n"
    path = write(os.path.join(work, "script.py"), head + script)
    return run([python_with("torchvision"), path], cwd=work, env=dict(os.environ, CHEX_DATASET=dataset())).stdout


def evaluate(work, *options, code=0):
    out = os.path.join(work, "out")
    done = run([program("evaluate-split"), f"data={dataset()}", f"out={out}", "side=224", "batch=4", "replicates=10",
                *options], code)
    return out, done


def changed(recipe, old, new):
    assert old in recipe, f"the recipe has no {old!r}"
    return recipe.replace(old, new)


@case("doc/weights.md has the three recipes", slow=True)
def _(_work):
    assert sorted(recipes()) == ["checkpoint", "imagenet", "pytorch"], sorted(recipes())


@case("weights of ImageNet's shape become an init file, tensor by tensor", slow=True)
def _(work):
    for model in ("densenet121", "resnet50"):
        head = "classifier." if model == "densenet121" else "fc."
        recipe = changed(recipes()["imagenet"], 'densenet121(weights="IMAGENET1K_V1")', "made_here()")
        recipe = changed(recipe, "densenet121-imagenet", "init")
        python(work, RANDOM + f"torchvision.models.made_here = lambda: random_model({model!r}, 1000)\n" + recipe)
        _, done = evaluate(work, f"model={model}", f"weights={work}/init.safetensors", code=1)
        assert "do not fit" in done.stderr and head in done.stderr, done.stderr
        evaluate(work, f"model={model}", f"weights={work}/init.safetensors", "head=new", "save=best.safetensors")
        print("    ", python(work, f"""
from safetensors.torch import load_file
given, kept = load_file("init.safetensors"), load_file("out/best.safetensors")
assert set(given) == set(kept), set(given) ^ set(kept)
for name, tensor in given.items():
    if name.startswith({head!r}):
        assert kept[name].shape[0] == 14 and (name.endswith("bias") or kept[name].std() > 0), name
    else:
        assert (tensor == kept[name]).all(), name
print({model!r}, len(given), "tensors")
""").strip())


@case("a checkpoint loads in PyTorch by load_state_dict(strict=True) and gives the same probabilities", slow=True)
def _(work):
    for model in ("densenet121", "resnet50"):
        python(work, RANDOM + f"""
from safetensors.torch import save_file
save_file(random_model({model!r}, 14).state_dict(), "given.safetensors")
""")
        out, _ = evaluate(work, f"model={model}", f"weights={work}/given.safetensors", "save=best.safetensors")
        shutil.copy(os.path.join(out, "best.safetensors"), work)
        printed = python(work, changed(recipes()["pytorch"], "models.densenet121", f"models.{model}"))
        theirs = {line.split()[0]: [float(v) for v in line.split()[1:]] for line in printed.splitlines()}
        ours = {row[0]: [float(v) for v in row[6:20]] for row in read_csv(os.path.join(out, "predictions.csv"))[1]}
        assert list(ours) == list(theirs) and len(ours) > 3, (list(ours), list(theirs))
        worst = max(abs(a - b) for name in ours for a, b in zip(ours[name], theirs[name]))
        spread = [min(v for row in ours.values() for v in row), max(v for row in ours.values() for v in row)]
        assert spread[1] - spread[0] > 0.05, f"probabilities of {spread}: nothing is compared"
        assert worst < 1e-5, worst
        print(f"     {model}: largest difference of a probability {worst:.1e}, of {spread[0]:.3f} .. {spread[1]:.3f}")


@case("densenet-micro is the DenseNet of torchvision that doc/weights.md names: strict, the same numbers", slow=True)
def _(work):
    run([program("chex-train"), "-q", "-d", dataset(), "-o", os.path.join(work, "run"), "--model", "densenet-micro",
         "--epochs", 1, "--bootstrap", 0])
    shutil.copy(os.path.join(work, "run", "best.safetensors"), work)
    recipe = recipes()["pytorch"]
    model, = re.findall(r"# densenet-micro: (.*)", recipe)
    printed = python(work, changed(recipe, "models.densenet121(num_classes=14)", "models." + model))
    theirs = {line.split()[0]: [float(v) for v in line.split()[1:]] for line in printed.splitlines()}
    ours = {row[0]: [float(v) for v in row[6:20]]
            for row in read_csv(os.path.join(work, "run", "predictions-val.csv"))[1]}
    worst = max(abs(a - b) for name in ours for a, b in zip(ours[name], theirs[name]))
    assert list(ours) == list(theirs) and worst < 1e-5, worst
    print(f"     largest difference of a probability {worst:.1e}")


@case("a checkpoint with the tensor names of CheXNet becomes an init file", slow=True)
def _(work):
    python(work, RANDOM + """
import re
from safetensors.torch import save_file
state = random_model("densenet121", 14).state_dict()
save_file(state, "given.safetensors")
old = {re.sub(r"(denselayer\\d+\\.(?:norm|conv))(\\d)", r"\\1.\\2", name): tensor for name, tensor in state.items()}
old = {"module.densenet121." + re.sub(r"^classifier", "classifier.0", name): t for name, t in old.items()}
assert "module.densenet121.features.denseblock1.denselayer1.norm.1.weight" in old
torch.save({"epoch": 3, "state_dict": old}, "model.pth.tar")
""" + recipes()["checkpoint"])
    evaluate(work, "model=densenet121", f"weights={work}/given.safetensors")
    expected = slurp(os.path.join(work, "out", "predictions.csv"))
    evaluate(work, "model=densenet121", f"weights={work}/model.safetensors")
    assert slurp(os.path.join(work, "out", "predictions.csv")) == expected


@case("ten crops equal torchvision's, and the result is the mean of the probabilities", slow=True)
def _(work):
    python(work, RANDOM + """
from safetensors.torch import save_file
save_file(random_model("densenet121", 14).state_dict(), "best.safetensors")
""")
    # 256 - 221 = 35: the middle begins at round(17.5) = 18.
    recipe = changed(recipes()["pytorch"], "center_crop(pixels, [224, 224]).expand(-1, 3, -1, -1)",
                     "torch.cat(ten_crop(pixels, [221, 221])).expand(-1, 3, -1, -1)")
    recipe = changed(recipe, "import center_crop, normalize", "import ten_crop, normalize")
    recipe = changed(recipe, "torch.sigmoid(logits)", "torch.sigmoid(logits).reshape(10, -1, 14).mean(0)")
    printed = python(work, recipe)
    theirs = {line.split()[0]: [float(v) for v in line.split()[1:]] for line in printed.splitlines()}
    out = os.path.join(work, "out")
    run([program("evaluate-split"), f"data={dataset()}", f"out={out}", "side=221", "tta=tencrop", "model=densenet121",
         f"weights={work}/best.safetensors"])
    ours = {row[0]: [float(v) for v in row[6:20]] for row in read_csv(os.path.join(out, "predictions.csv"))[1]}
    worst = max(abs(a - b) for name in ours for a, b in zip(ours[name], theirs[name]))
    assert list(ours) == list(theirs) and worst < 1e-5, worst
    print(f"     largest difference {worst:.1e}")


if __name__ == "__main__":
    sys.exit(case.main())
