# SPDX-License-Identifier: Apache-2.0
# C for the messages, made by protoc-c in the build folder.  A release contains it, so only developers need protoc-c.
schemas/example.pb-c.c: schemas/example.proto
	$(AM_V_GEN)$(MKDIR_P) schemas && $(PROTOC_C) --c_out=schemas -I$(srcdir)/schemas $(srcdir)/schemas/example.proto
schemas/example.pb-c.h: schemas/example.pb-c.c
schemas/event.pb-c.c: schemas/event.proto
	$(AM_V_GEN)$(MKDIR_P) schemas && $(PROTOC_C) --c_out=schemas -I$(srcdir)/schemas $(srcdir)/schemas/event.proto
schemas/event.pb-c.h: schemas/event.pb-c.c
schemas/onnx.pb-c.c: schemas/onnx.proto
	$(AM_V_GEN)$(MKDIR_P) schemas && $(PROTOC_C) --c_out=schemas -I$(srcdir)/schemas $(srcdir)/schemas/onnx.proto
schemas/onnx.pb-c.h: schemas/onnx.pb-c.c

generated_messages = schemas/example.pb-c.c schemas/example.pb-c.h schemas/event.pb-c.c schemas/event.pb-c.h \
	schemas/onnx.pb-c.c schemas/onnx.pb-c.h
BUILT_SOURCES += $(generated_messages)
MAINTAINERCLEANFILES = $(generated_messages)
EXTRA_DIST += $(generated_messages)
# Else only `make all` and `make check` would know: `make chex-train` in an empty folder too.
$(libchexcore_la_OBJECTS) $(libtrain_la_OBJECTS): | $(generated_messages)
schemasdir = $(pkgdatadir)/schemas
dist_schemas_DATA = \
	schemas/README.md \
	schemas/boxes.schema.json \
	schemas/certificate.schema.json \
	schemas/convert.schema.json \
	schemas/evaluation.schema.json \
	schemas/event.proto \
	schemas/example.proto \
	schemas/inspect.schema.json \
	schemas/manifest.schema.json \
	schemas/metrics.schema.json \
	schemas/onnx.proto \
	schemas/predict.schema.json \
	schemas/run.schema.json \
	schemas/train.schema.json
