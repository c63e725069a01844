# Shell functions for guests of network.rs, beside those of tests/network/names.sh.

# Enforces, as a node of its own, with another address above its own.
prepare() {
	dmesg -c > /dev/null
	mkdir -p /tmp/heard && chown 0:0 /keys && chmod 600 /keys &&
		sed -i s,^node.*,node\ =\ $((6 + own)), /network.toml && under_tollgate &&
		ip addr add 10.77.0.$((own + 10))/24 dev eth0 && ip addr add fd00:77::$((own + 10))/64 dev eth0
}
# `run TYPE COMMAND...`
run() { kind=$1; shift; tollgate run --context system_u:system_r:$kind:s0 -- "$@"; }
# `receive NAME LEVEL PROTOCOL FAMILY PORT` in the background.
receive() {
	as $2 talk recv $3 $4 $5 600 > /tmp/heard/$1 2>&1 &
	for attempt in $(seq 100); do
		grep -q ready /tmp/heard/$1 && return
		sleep 0.1
	done
	return 1
}
# `receive_both NAME LEVEL PORT`: datagrams of IPv4 and IPv6.
receive_both() { receive ${1}4 $2 udp 4 $3 && receive ${1}6 $2 udp 6 $3; }
# `keep FILE FAMILY LENGTH LEVEL [PORT]`: the frame of a datagram that a process sends at a level.
keep() {
	: > /tmp/kept; talk keep eth0 $1 17 $3 > /tmp/kept &
	until grep -q ready /tmp/kept; do sleep 0.05; done
	as $4 talk send udp $2 $(to $2) ${5:-7000} $3 --bind 4000 --wait 1
	wait $!; cat /tmp/kept; grep -q 'kept bytes' /tmp/kept
}
# `keep_both LENGTH LEVEL [PORT]`: of IPv4 and IPv6, as /kept4 and /kept6.
keep_both() {
	for family in 4 6; do keep /kept$family $family $* && cp /tmp/kept /kept$family.text || return 1; done
}
to() { if [ $1 = 4 ]; then echo 10.77.0.$other; else echo fd00:77::$other; fi; }
# What was received, one line each, after the name of its receiver.
heard() { sleep 1; for file in /tmp/heard/*; do sed s,^,${file##*/}\ , $file; done; }
resident() { grep VmRSS /proc/$(daemon)/status | tr -dc "0-9\n"; }
# Fails if the kernel has complained.
kernel_log() { dmesg | grep -E 'WARNING|BUG|Oops|Call Trace|csum failure|rcu_sched' && return 1; return 0; }

# `esp tunnel` joins both by 10.79.0.1 and 10.79.0.2 on devices of their own, `esp transport` protects 10.77.0.1 and 10.77.0.2.
# Each packet is accepted once.
esp() {
	if [ $1 = tunnel ]; then
		set -- tunnel 0.0.0.0/0 0.0.0.0/0 if_id 9
	else
		set -- transport 10.77.0.$own 10.77.0.$other
	fi
	mode=$1 here=$2 there=$3
	shift 3
	for from in 1 2; do
		ip xfrm state add src 10.77.0.$from dst 10.77.0.$((3 - from)) proto esp spi 0x20$from reqid 2 mode $mode $* replay-window 64 \
			aead 'rfc4106(gcm(aes))' 0x000102030405060708090a0b0c0d0e0f10111213 128 || return 1
	done
	ip xfrm policy add src $here dst $there dir out $* tmpl src 10.77.0.$own dst 10.77.0.$other proto esp reqid 2 mode $mode
	ip xfrm policy add src $there dst $here dir in $* tmpl src 10.77.0.$other dst 10.77.0.$own proto esp reqid 2 mode $mode
	[ $mode = transport ] && return
	ip link add x0 type xfrm dev eth0 if_id 9
	ip addr add 10.79.0.$own/24 dev x0
	ip link set x0 up
	# The daemon has attached its programs by then.
	until ip route | grep -q 'dev x0.*mtu'; do sleep 0.1; done
	sleep 1
}
