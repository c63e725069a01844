# `make run` prices the security modules; `make test` tests everything. Both install what is missing.

TARGET   := x86_64-unknown-linux-gnu
TOLLGATE := target/$(TARGET)/release/tollgate
FLEET     = $(dir $(TOLLGATE))tollgate-fleet
STUDY    ?= quick
OUT      ?= results/$(STUDY)-$(shell date +%Y%m%d-%H%M%S)
CARGO    := scripts/cargo
VERIFY   := $(CARGO) test --release --locked --quiet --package tollgate --features long --test tests -- --include-ignored
# Tests of guests wait for places (tests/program/guests.rs) and for guests that they share: a thread for each.
THREADS  ?= 256
# What `make fuzz` runs, nothing for all targets, and how long each.
FUZZ     ?=
SECONDS  ?= 60
export CARGO_BUILD_TARGET := $(TARGET)
# The C library: soname and version.
SONAME   := libtollgate.so.0
VERSION  := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
LIBRARY  := target/lib
SOURCES  := $(wildcard lib/*.c)
SELINUX  := libselinux.so.1
SELINUX_SOURCES := $(SOURCES) $(wildcard lib/selinux/*.c)
PREFIX   ?= /usr/local
LIBDIR   ?= $(PREFIX)/lib
SHARE    := $(DESTDIR)$(PREFIX)/share
BASH     := $(SHARE)/bash-completion/completions
ZSH      := $(SHARE)/zsh/vendor-completions
FISH     := $(SHARE)/fish/vendor_completions.d
SETS     := $(filter-out %.md,$(wildcard policies/guard/*))
POLICY   := $(filter-out %.tsv,$(wildcard policies/tollgate/*))
# The guides that are installed.
GUIDES   := $(addprefix docs/,quickstart.md enforcer.md protection.md confining.md services.md learning.md audit.md policy.md labels.md network.md metrics.md debian.md) SECURITY.md

.PHONY: run build kernels lib deb install uninstall test test-rest test-unit test-long fuzz verify lint needs clean

run: build
	$(TOLLGATE) study run $(STUDY) --out $(OUT)

build: needs
	$(CARGO) build --release --locked

# The kernels that studies of LSM hooks themselves need, built from Debian's source in the user's cache; docs/built-kernels.md.
kernels: build
	@scripts/install-needs --kernels
	$(TOLLGATE) vm build

# The library for C programs; docs/library.md.
lib: $(LIBRARY)/$(SONAME)

$(LIBRARY)/$(SONAME): $(SOURCES) $(wildcard lib/*.h) lib/tollgate.map
	@mkdir -p $(LIBRARY)
	$(CC) $(CPPFLAGS) -std=c11 -O2 -Wall -Wextra -Werror -fPIC $(CFLAGS) -shared $(LDFLAGS) \
	    -Wl,-soname,$(SONAME),--version-script=lib/tollgate.map,-z,defs,-z,relro,-z,now -o $@ $(SOURCES)

# libselinux.so.1 of our own, which nothing installs: a service opts in (lib/selinux/README.md).
.PHONY: selinux-lib
selinux-lib: $(LIBRARY)/selinux/$(SELINUX)

$(LIBRARY)/selinux/$(SELINUX): $(SELINUX_SOURCES) $(wildcard lib/*.h lib/selinux/*.h crates/abi/*.h) lib/selinux/selinux.map
	@mkdir -p $(LIBRARY)/selinux
	$(CC) $(CPPFLAGS) -std=c11 -O2 -Wall -Wextra -Werror -Wno-deprecated-declarations -fPIC $(CFLAGS) -Icrates/abi -shared $(LDFLAGS) \
	    -Wl,-soname,$(SELINUX),--version-script=lib/selinux/selinux.map,-z,defs,-z,relro,-z,now -o $@ $(SELINUX_SOURCES) -lpcre2-8

# Debian packages in target/deb, which install nothing that enforces by itself; docs/debian.md.
deb: build $(LIBRARY)/$(SONAME)
	packaging/deb $(VERSION) $(TOLLGATE) target/deb

# The program with its manual pages and completions, the library, our policy's source and the systemd unit, below
# $(DESTDIR)$(PREFIX). Missing files are built first, as the user who runs this.
install: $(LIBRARY)/$(SONAME)
	@[ -x $(TOLLGATE) ] || $(MAKE) build
	@$(MAKE) --no-print-directory install-program
	@$(MAKE) --no-print-directory install-lib

.PHONY: install-program
install-program:
	install -D -m 755 $(TOLLGATE) $(DESTDIR)$(PREFIX)/bin/tollgate
	install -m 755 $(FLEET) $(DESTDIR)$(PREFIX)/bin/tollgate-fleet
	install -d $(SHARE)/man/man1 $(SHARE)/man/man5 $(SHARE)/man/man7 $(SHARE)/doc/tollgate $(BASH) $(ZSH) $(FISH) \
	    $(SHARE)/tollgate/policy $(SHARE)/tollgate/guard $(DESTDIR)$(PREFIX)/lib/systemd/system
	$(TOLLGATE) manuals $(SHARE)/man/man1
	install -m 644 docs/man/*.5 $(SHARE)/man/man5
	install -m 644 docs/man/*.7 $(SHARE)/man/man7
	install -m 644 $(wildcard $(GUIDES)) $(SHARE)/doc/tollgate
	$(FLEET) manuals $(SHARE)/man/man1
	$(TOLLGATE) completions bash >$(BASH)/tollgate
	$(FLEET) completions bash >$(BASH)/tollgate-fleet
	$(TOLLGATE) completions zsh >$(ZSH)/_tollgate
	$(FLEET) completions zsh >$(ZSH)/_tollgate-fleet
	$(TOLLGATE) completions fish >$(FISH)/tollgate.fish
	$(FLEET) completions fish >$(FISH)/tollgate-fleet.fish
	install -m 644 $(POLICY) $(SHARE)/tollgate/policy
	install -m 644 $(SETS) $(SHARE)/tollgate/guard
	install -D -m 644 packaging/prometheus/tollgate.rules.yml $(SHARE)/tollgate/prometheus/tollgate.rules.yml
	install -D -m 644 packaging/containers/tollgate.json $(SHARE)/tollgate/containers/tollgate.json
	for unit in tollgate tollgate-fleet; do \
	    sed 's|@PREFIX@|$(PREFIX)|' packaging/$$unit.service.in >$(DESTDIR)$(PREFIX)/lib/systemd/system/$$unit.service; \
	done
	install -D -m 644 packaging/tollgate-fleet.sysusers $(DESTDIR)$(PREFIX)/lib/sysusers.d/tollgate-fleet.conf

.PHONY: install-lib
install-lib: $(LIBRARY)/$(SONAME)
	install -D -m 644 $(LIBRARY)/$(SONAME) $(DESTDIR)$(LIBDIR)/$(SONAME)
	ln -sf $(SONAME) $(DESTDIR)$(LIBDIR)/libtollgate.so
	install -D -m 644 lib/tollgate.h $(DESTDIR)$(PREFIX)/include/tollgate.h
	install -d $(DESTDIR)$(LIBDIR)/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIBDIR)|; s|@VERSION@|$(VERSION)|' lib/tollgate.pc.in \
	    >$(DESTDIR)$(LIBDIR)/pkgconfig/tollgate.pc

# Removes what `install` with the same variables has installed.
uninstall:
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/,bin/tollgate bin/tollgate-fleet lib/systemd/system/tollgate.service lib/systemd/system/tollgate-fleet.service lib/sysusers.d/tollgate-fleet.conf include/tollgate.h) \
	    $(addprefix $(DESTDIR)$(LIBDIR)/,$(SONAME) libtollgate.so pkgconfig/tollgate.pc) $(SHARE)/man/man1/tollgate.1 \
	    $(SHARE)/man/man1/tollgate-*.1 $(addprefix $(BASH)/,tollgate tollgate-fleet) $(addprefix $(ZSH)/,_tollgate _tollgate-fleet) \
	    $(addprefix $(FISH)/,tollgate.fish tollgate-fleet.fish)
	rm -f $(SHARE)/man/man5/tollgate-policy.5 $(SHARE)/man/man7/tollgate.7 $(addprefix $(SHARE)/doc/tollgate/,$(notdir $(GUIDES)))
	rm -rf $(SHARE)/tollgate

needs:
	@scripts/install-needs

# Unit tests, the program's own command line, real kernels in guests: 12 minutes on two processors.
test: needs
	@scripts/install-needs --test
	@scripts/test $(THREADS)

# The tests that `test` ignores because each takes long: half an hour. A change must pass them as well. PART=1/3: every
# third module of tests/, from the first on (.ci/run plays a third, which the commit's hash chooses).
test-rest: needs
	@scripts/install-needs --test
	@scripts/test $(THREADS) --ignored $(PART)

# Tests that need neither root nor QEMU nor a network. What is skipped fetches an etcd.
test-unit: needs
	$(CARGO) test --release --locked --workspace --lib --bins -- --skip etcd::tests --skip simulate::tests
	$(CARGO) test --release --locked --workspace --doc

# Input after input for what reads hostile bytes; CONTRIBUTING.md, "To fuzz a reader".
fuzz: needs
	@scripts/fuzz $(SECONDS) $(FUZZ)

# All tests, then on every kernel, with the figures of docs/verify.md.
test-long: test test-rest
	$(MAKE) verify

# The claims of docs/verify.md, each with figure, goal, met or not: fails where one is not, those by the wall clock apart. CLAIM=WORD runs the tests whose names hold the word; a
# name is the file's, then the function's: enforcer_cache::denies_what_has_the_address_of_an_inode_that_was_allowed.
verify: build
	@scripts/install-needs --test
	@[ -z "$(CLAIM)" ] || $(VERIFY) --list $(CLAIM) | grep -q ': test$$' || \
	    { echo 'tollgate: no test has "$(CLAIM)" in its name; docs/verify.md lists the claims' >&2; exit 1; }
	@mkdir -p target/verify
	@{ $(VERIFY) --nocapture --test-threads 1 $(CLAIM); echo $$? >target/verify/status; } 2>&1 | tee target/verify/log
	@if grep ': NOT MET$$' target/verify/log; then echo 'tollgate: these goals are not met' >&2; exit 1; fi
	@exit $$(cat target/verify/status)

# In the profile of the build, so that build scripts and what they need are compiled once. TOLLGATE_LINT=required: a tool
# that is not installed is a failure.
lint:
	@scripts/install-needs --lint
	$(CARGO) fmt --all --check
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml --check
	$(CARGO) fmt --manifest-path examples/rust/Cargo.toml --check
	$(CARGO) clippy --release --workspace --all-targets --locked -- -D warnings
	$(CARGO) clippy --release --workspace --all-targets --all-features --locked -- -D warnings
	@if [ "$(TOLLGATE_LINT)" = required ] || $(CARGO) deny --version >/dev/null 2>&1; then \
	    $(CARGO) deny check licenses bans sources; \
	    else echo 'tollgate: cargo-deny is not installed: licences and sources of crates are not checked' >&2; fi
	clang-format --dry-run --Werror $$(git ls-files '*.c' '*.h')

clean:
	$(CARGO) clean
