# The root file system of all images, and functions that start containers.
base=/var/lib/containers/base; mkdir -p $base/{bin,usr/bin,lib64,usr/lib/x86_64-linux-gnu,proc,sys,dev,tmp,etc,run,other,host,volume}
cp /bin/busybox $base/bin/; for name in sh sleep cat true; do ln -s busybox $base/bin/$name; done
cp /usr/bin/python3.11 $base/usr/bin/; cp -a /usr/lib/python3.11 $base/usr/lib/
cp -L /lib64/ld-linux-x86-64.so.2 $base/lib64/
for name in libc.so.6 libm.so.6 libz.so.1 libexpat.so.1 libffi.so.8; do cp -L /lib/x86_64-linux-gnu/$name $base/usr/lib/x86_64-linux-gnu/; done
cp /root/acts.py $base/; : >$base/shadow
echo 'root:x:0:0::/:/bin/sh' >$base/etc/passwd
python="/usr/bin/python3.11 /acts.py"

# until FOR COMMAND: waits until the command succeeds.
await() { for i in $(seq 300); do "$@" >/dev/null 2>&1 && return; sleep 0.2; done; echo "never: $*"; }

# bundle NAME EDIT: a container for runc, which shares all namespaces but those of mounts; EDIT is Python that changes `config`.
bundle() {
    folder=/var/lib/containers/c/$1; mkdir -p $folder/{rootfs,up,work}
    mountpoint -q $folder/rootfs || mount -t overlay -o lowerdir=$base,upperdir=$folder/up,workdir=$folder/work $1 $folder/rootfs
    (cd $folder; rm -f config.json; /usr/sbin/runc spec; python3 - "$2" <<'P'
import json, sys
config = json.load(open("config.json"))
process, linux = config["process"], config["linux"]
process["terminal"] = config["root"]["readonly"] = False
linux["namespaces"] = [{"type": "mount"}]
del linux["maskedPaths"], linux["readonlyPaths"]
config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] not in ("/sys", "/dev/mqueue")]
for capabilities in process["capabilities"].values():
    capabilities.append("CAP_SYS_PTRACE")
def bind(source, destination):
    config["mounts"].append({"source": source, "destination": destination, "type": "bind", "options": ["rbind", "rw"]})
exec(sys.argv[1])
config.pop("hostname", None)
json.dump(config, open("config.json", "w"))
P
    )
}
runc() { $wrapper /usr/sbin/runc "$@"; }
# up NAME, down NAME: in the background; ended and gone. The container keeps its output, a pipe, so nobody waits for its end.
up() { runc run --detach --bundle /var/lib/containers/c/$1 $1 </dev/null > >(cat) 2>&1; }
down() { runc delete --force $1; }
# acts NAME PREFIX: what a container prints that ends by itself, each line with the prefix.
acts() { runc run --bundle /var/lib/containers/c/$1 $1 </dev/null 2>&1 | cat | sed "s/^/$2 /"; }
process_of() { runc state $1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["pid"])'; }
