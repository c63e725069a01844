# Builds upstream's reference policy of a type (mls, mcs) with all its modules, in the present folder: policy.33 and
# file_contexts. The packages that it needs are unpacked in the folder that is named second.
#   sh upstream.sh TYPE PACKAGES
set -e
PATH="$2/usr/bin:$PATH" LD_LIBRARY_PATH="$2/usr/lib/x86_64-linux-gnu:$2/lib/x86_64-linux-gnu"
export PATH LD_LIBRARY_PATH
zstd -dc "$2/usr/src/selinux-policy-src.tar.zst" | tar x --strip-components 1
# The package has Debian's choice of modules, and its scripts are not executable.
rm -f policy/modules.conf policy/booleans.conf
chmod +x support/*
build() {
	make -s TYPE="$type" NAME=all MONOLITHIC=y SYSTEMD=y UBAC=y AWK=awk CHECKPOLICY=checkpolicy \
		PYTHON="python3.11 -bb -t -t -E -W error" "$@"
}
type=$1
build conf
sed -i 's/= module$/= base/' policy/modules.conf
build policy file_contexts
