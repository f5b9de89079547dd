#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read the event files of a run with TensorBoard, and print what it sees: one JSON object.

    read_events.py RUN

For check_events.py.  What the plugins scalars, pr_curves, text and hparams would show comes from their own readers.
"""
import json
import os
import sys

from tensorboard.backend.event_processing import (data_provider, event_accumulator, event_file_loader,
                                                   plugin_event_multiplexer)
from tensorboard import context
from tensorboard.plugins import base_plugin
from tensorboard.plugins.hparams import metadata as hparams
from tensorboard.plugins.pr_curve import pr_curves_plugin


def raw(folder):
    """Every Event of every file: [name, [[step, what] ...]]"""
    files = []
    for name in sorted(os.listdir(folder)):
        if "tfevents" in name:
            loader = event_file_loader.LegacyEventFileLoader(os.path.join(folder, name))
            files.append([name, [[e.step, e.WhichOneof("what")] for e in loader.Load()]])
    return files


def main():
    folder = sys.argv[1]
    everything = dict.fromkeys((event_accumulator.SCALARS, event_accumulator.HISTOGRAMS, event_accumulator.TENSORS), 0)
    old = event_accumulator.EventAccumulator(folder, everything)
    old.Reload()
    seen = {
        "files": raw(folder),
        "scalars": {tag: [[e.step, e.value] for e in old.Scalars(tag)] for tag in old.Tags()["scalars"]},
        "histograms": {tag: [[e.step, vars(e.histogram_value)] for e in old.Histograms(tag)]
                       for tag in old.Tags()["histograms"]},
    }

    # As TensorBoard's own server reads the folder.
    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"pr_curves": 0, "scalars": 0})
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
    plugin = pr_curves_plugin.PrCurvesPlugin(base_plugin.TBContext(logdir=folder, data_provider=provider))
    request = context.RequestContext()
    tags = plugin.tags_impl(request, experiment="")
    seen["curves"] = {tag: plugin.pr_curves_impl(request, "", [run], tag)[run] for run in tags for tag in tags[run]}
    seen["titles"] = {tag: about["displayName"] for run in tags for tag, about in tags[run].items()}
    run = multiplexer.Runs() and list(multiplexer.Runs())[0]
    values = provider.read_scalars(request, experiment_id="", plugin_name="scalars", downsample=100000)
    seen["scalars_of_server"] = {tag: [[v.step, v.value] for v in series] for tag, series in values[run].items()}
    texts = provider.read_tensors(request, experiment_id="", plugin_name="text", downsample=100)
    seen["texts"] = {tag: [v.numpy.item().decode() for v in series] for tag, series in texts[run].items()}
    start = provider.list_tensors(request, experiment_id="", plugin_name="hparams")[run][hparams.SESSION_START_INFO_TAG]
    info = hparams.parse_session_start_info_plugin_data(start.plugin_content)
    seen["hparams"] = {key: getattr(v, v.WhichOneof("kind")) for key, v in info.hparams.items()}
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
