systemctl is-system-running --wait >/dev/null
tar -C /var/lib/containers/base -c . | podman import - base >/dev/null; podman images
options="--network host --ipc host --pid host --cap-add sys_ptrace"
phase() {
    podman create --name b $options base $python serve b 4711 >/dev/null
    podman start b >/dev/null; merged=$(podman inspect --format '{{.GraphDriver.Data.MergedDir}}' b)
    await test -e $merged/ready; process=$(podman inspect --format '{{.State.Pid}}' b)
    podman run --rm $options -v $merged:/other -v /etc/shadow:/shadow base $python read-secret=/other/secret read-shadow=/shadow \
        write-new=/other/new kill=$process ptrace=$process read-environ=/proc/$process/environ connect=/other/sock abstract=b \
        send=/other/datagrams shm=4711 sem=4711 msg=4711 write-own=/own read-own=/own read-hosts=/etc/hosts </dev/null | sed "s/^/$1 a /"
}
phase without; podman rm -f -t 0 b; ipcrm --all

dpkg -i /root/tollgate.deb >/dev/null 2>&1; : >/etc/default/tollgate
systemctl enable --now tollgate 2>/dev/null; echo "mode: $(tollgate mode)"
mkdir -p /usr/share/containers/oci/hooks.d; cp /usr/share/tollgate/containers/tollgate.json /usr/share/containers/oci/hooks.d/
phase with >/root/with; cat /root/with
[ $(grep -c '^with a \(write-own\|read-own\): done' /root/with) = 2 ] && echo "own: done"
grep -q '^with a read-hosts: done' /root/with && echo "hosts: read"
context() { tollgate ps | awk -v process=$1 '$4 == process { print $1 }'; }
podman exec --detach b sleep 1000 >/dev/null
await sh -c '[ $(tollgate ps --domain container_t | grep -c sleep) = 1 ]'; tollgate ps --domain container_t
[ $(tollgate ps --domain container_t | awk 'NR > 1 { print $1 }' | sort -u | wc -l) = 1 ] && echo "exec: the container's"
# Its segment, which is the host's, has the categories of its first start.
podman stop -t 0 b >/dev/null; ipcrm --all; podman start b >/dev/null && await test -e $(podman inspect --format '{{.GraphDriver.Data.MergedDir}}' b)/ready
podman exec b cat /secret | grep -q secret && echo "again: done"
tollgate audit | tail -n 40
podman rm -f -t 0 b >/dev/null; await sh -c '! tollgate container list | grep -q .'; echo "left: $(tollgate container list | wc -l)"
systemctl stop tollgate; podman run --rm --network none base /bin/true && echo "dead: started" || echo "dead: refused"
