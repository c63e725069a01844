# A boot with another policy; and the package removed.
tollgate status >/root/status; echo "status with another policy: $?"; cat /root/status
grep -q 'is not the one that was in force' /root/status && journalctl -b -u tollgate --no-pager | grep -q 'is not the one that was in force' &&
    echo "way a boot with another policy: told"
tollgate policy rebuild --force >/dev/null; systemctl reset-failed notes; way "the policy rebuilt"
tollgate stop --force; tollgate status >/root/status; [ $? = 1 ] && grep -q nothing /root/status && echo "way enforcement ended: told by status"; cat /root/status
dpkg -r tollgate >/dev/null 2>&1; echo "removed: $?"; systemctl restart notes; ready; get / | grep -q hello && echo "notes after all: kept"
