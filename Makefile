# SPDX-License-Identifier: Apache-2.0
# `make demo` and `make test` are all a newcomer needs; either sets up what is
# missing (scripts/setup.sh). The rest is for developers.

PY := .venv/bin/python
CXX_FILES = git ls-files -z '*.cpp' '*.h'
HEADED_FILES = git ls-files -z '*.cpp' '*.h' '*.td' '*.py' '*.sh' '*.mlir' '*CMakeLists.txt' '*.cmake'

.PHONY: help demo test test-asan test-tsan check-superdsc build setup bench bench-check lint format tidy includes docs wheel models clean

help:
	@echo 'make demo       set up, build, run a Llama-style model on the device model'
	@echo 'make test       set up, build, run lit, GoogleTest and pytest'
	@echo 'make build      set up, build everything, run nothing'
	@echo 'make lint       check formatting and Python style; make format mends both'
	@echo 'make tidy       clang-tidy over lib and tools'
	@echo 'make includes   compile each C++ file by itself, without precompiled headers'
	@echo 'make test-asan  all that runs tools, memory and undefined behaviour checked'
	@echo 'make test-tsan  GoogleTest of the runtime, data races checked'
	@echo 'make check-superdsc  every graph of the tests on KTIR and through SuperDSC'
	@echo 'make models     run tiny members of public model families, write the page of results'
	@echo 'make docs       the documentation as a site, into build/site'
	@echo 'make bench      run benchmarks, print every ratio with its limit'
	@echo 'make bench-check  the same, and fail if one has become worse beyond noise'
	@echo 'make wheel      build a wheel into dist/ and try it'

# What the demo needs, without the tests' executables.
demo:
	@scripts/setup.sh products
	@$(PY) examples/demo.py

test: build
	@$(PY) scripts/run_tests.py

build:
	@scripts/setup.sh all

# Packages and .venv only.
setup:
	@scripts/setup.sh environment

bench:
	@scripts/setup.sh products
	@$(PY) scripts/bench.py

bench-check:
	@scripts/setup.sh products
	@$(PY) scripts/bench.py --check

lint: setup
	@$(CXX_FILES) | xargs -0 -r clang-format-22 --dry-run -Werror
	@.venv/bin/ruff check
	@.venv/bin/ruff format --check
	@headless=$$($(HEADED_FILES) | xargs -0 -r grep -L 'SPDX-License-Identifier: Apache-2.0'); \
	  if [ -n "$$headless" ]; then echo "no licence header: $$headless"; exit 1; fi
	@echo 'lint: clean'

format: setup
	@$(CXX_FILES) | xargs -0 -r clang-format-22 -i
	@.venv/bin/ruff format
	@.venv/bin/ruff check --fix

tidy: build
	@$(PY) scripts/source_commands.py
	@run-clang-tidy-22 -quiet -p build/sources '/(lib|tools)/.*\.cpp$$'

includes: build
	@$(PY) scripts/check_includes.py

# LLVM is not instrumented: it fills containers and unpoisons what its inline
# allocators poisoned without the sanitizer seeing it. Fresh memory is NaN, so
# that a result which rests on it is wrong.
ASAN = ASAN_OPTIONS=detect_container_overflow=0:allow_user_poisoning=0:max_malloc_fill_size=1048576:malloc_fill_byte=255 \
  UBSAN_OPTIONS=print_stacktrace=1
# Of pytest, what calls the tools alone; conftest.py is for the extension.
TOOL_TESTS = $(shell grep -l '^from commands import' python/tests/test_*.py)
test-asan:
	@scripts/setup.sh sanitizers
	@[ -f build-asan/build.ninja ] || cmake -G Ninja -B build-asan \
	  -DSPYRE_SANITIZE=address,undefined -DSPYRE_BUILD_TORCH=OFF
	@ninja -C build-asan
	@$(ASAN) $(PY) scripts/run_tests.py --build $(CURDIR)/build-asan lit
	@$(ASAN) SPYRE_BUILD_DIR=$(CURDIR)/build-asan $(PY) -m pytest -q --noconftest $(TOOL_TESTS)

check-superdsc: build
	@$(PY) scripts/superdsc_sweep.py

# What runs on several threads is the runtime.
TSAN_TESTS = $(patsubst %,python/tests/test_%.py,check_modes runtime_classic \
  runtime_contract_form runtime_files runtime_limits)
test-tsan:
	@scripts/setup.sh sanitizers
	@[ -f build-tsan/build.ninja ] || cmake -G Ninja -B build-tsan \
	  -DSPYRE_SANITIZE=thread -DSPYRE_BUILD_TORCH=OFF
	@ninja -C build-tsan SpyreRuntimeTests SpyreProgramTests spyre-run
	@TSAN_OPTIONS=halt_on_error=1 $(PY) scripts/run_tests.py --build $(CURDIR)/build-tsan \
	  lit --filter='Runtime/points|SpyreRuntimeTests|SpyreProgramTests'
	@TSAN_OPTIONS=halt_on_error=1 SPYRE_BUILD_DIR=$(CURDIR)/build-tsan \
	  $(PY) -m pytest -q --noconftest $(TSAN_TESTS)

models:
	@scripts/setup.sh models
	@$(PY) scripts/models.py --state build/models.jsonl --doc docs/reference/models.md

docs: setup
	@scripts/setup.sh docs

wheel:
	@scripts/check_wheel.sh dist

clean:
	rm -rf build build-asan build-tsan build-wheel-* dist
