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
tollgate ps --domain container_t | awk 'NR > 1 { print $4 }' | xargs kill -9
gone() { ! tollgate ps --domain container_t | grep -q sleep; }
await gone; for i in $(seq 50); do rmdir /sys/fs/cgroup/system.slice/c$i; done
await sh -c '! tollgate container list | grep -q .'; echo "left again: $(tollgate container list | wc -l)"
