#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Read the event files of a run with TensorBoard, and print what it sees: one JSON object.

    read_events.py RUN

For check_events.py.
"""
import json
import os
import sys

from tensorboard.backend.event_processing import (data_provider, event_accumulator, event_file_loader,
                                                   plugin_event_multiplexer)
from tensorboard import context


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
    old = event_accumulator.EventAccumulator(folder, {event_accumulator.SCALARS: 0})
    old.Reload()
    seen = {
        "files": raw(folder),
        "scalars": {tag: [[e.step, e.value] for e in old.Scalars(tag)] for tag in old.Tags()["scalars"]},
    }

    # As TensorBoard's own server reads the folder.
    multiplexer = plugin_event_multiplexer.EventMultiplexer(tensor_size_guidance={"scalars": 0})
    multiplexer.AddRunsFromDirectory(folder)
    multiplexer.Reload()
    provider = data_provider.MultiplexerDataProvider(multiplexer, folder)
    request = context.RequestContext()
    run = multiplexer.Runs() and list(multiplexer.Runs())[0]
    values = provider.read_scalars(request, experiment_id="", plugin_name="scalars", downsample=100000)
    seen["scalars_of_server"] = {tag: [[v.step, v.value] for v in series] for tag, series in values[run].items()}
    json.dump(seen, sys.stdout)


if __name__ == "__main__":
    main()
