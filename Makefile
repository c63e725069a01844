# `make run` prices the security modules; `make test` tests everything. Both install what is missing.

TARGET   := x86_64-unknown-linux-gnu
TOLLGATE := target/$(TARGET)/release/tollgate
STUDY    ?= quick
OUT      ?= results/$(STUDY)-$(shell date +%Y%m%d-%H%M%S)
CARGO    := scripts/cargo
VERIFY   := $(CARGO) test --release --locked --quiet --package tollgate --features long \
            $(if $(CLAIM),--test '*',--test long --test policy_decisions --test policy_figures --test scenarios) --
export CARGO_BUILD_TARGET := $(TARGET)

.PHONY: run build test test-unit test-long verify lint needs clean

run: build
	$(TOLLGATE) study run $(STUDY) --out $(OUT)

build: needs
	$(CARGO) build --release --locked

needs:
	@scripts/install-needs

# Everything: unit tests, the program's own command line, real kernels in guests. Under 15 minutes.
test: build
	$(CARGO) test --release --locked --workspace

# What needs neither root nor QEMU nor a network.
test-unit: needs
	$(CARGO) test --release --locked --workspace --lib --bins

# Every kernel, the figures of docs/verify.md, and what else takes longer.
test-long: test
	$(MAKE) verify

# The claims of docs/verify.md, each with figure, goal, met or not; CLAIM=WORD runs the tests whose names hold the word.
verify: build
	@[ -z "$(CLAIM)" ] || $(VERIFY) --list $(CLAIM) | grep -q ': test$$' || \
	    { echo 'tollgate: no test has "$(CLAIM)" in its name; docs/verify.md lists the claims' >&2; exit 1; }
	$(VERIFY) --nocapture --test-threads 1 $(CLAIM)

lint:
	@scripts/install-needs --lint
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@if $(CARGO) deny --version >/dev/null 2>&1; then $(CARGO) deny check licenses bans sources; \
	    else echo 'tollgate: cargo-deny is not installed: licences and sources of crates are not checked' >&2; fi
	clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

clean:
	$(CARGO) clean
