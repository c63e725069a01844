systemctl is-system-running --wait >/dev/null
dpkg -i /root/tollgate.deb >/dev/null 2>&1; : >/etc/default/tollgate
systemctl enable --now tollgate 2>/dev/null; echo "mode: $(tollgate mode)"
wrapper="tollgate container runtime"
for i in $(seq 50); do bundle c$i 'process["args"] = ["/bin/sleep", "100000"]'; done
start() { for i in $(seq 50); do up c$i & done; wait; }
start
echo "running: $(runc list | grep -c running)"; tollgate container list >/root/list
echo "contexts: $(awk '{ print $2 }' /root/list | sort -u | wc -l)"
echo "confined: $(tollgate ps --domain container_t | grep -c sleep)"
for i in $(seq 50); do down c$i & done; wait
await sh -c '! tollgate container list | grep -q .'; echo "left: $(tollgate container list | wc -l)"
start; echo "again: $(awk '{ print $2 }' <(tollgate container list) | sort -u | wc -l)"
# As if all runtimes were killed.
killall -9 sleep; for i in $(seq 50); do rmdir -p /sys/fs/cgroup/*/c$i /sys/fs/cgroup/c$i /sys/fs/cgroup/*/*/c$i 2>/dev/null; done
await sh -c '! tollgate container list | grep -q .'; echo "left again: $(tollgate container list | wc -l)"
tollgate status
