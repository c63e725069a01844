# What a service tries that was taken over, as root, to reach port 7400 of the other machine, which it may not; 7300 it may.
# Each attempt has a length of its own: an odd one is forbidden, and an even one is not. `/kept4` and `/kept6` are frames of an
# honest sender to port 7400, whose label is valid for their flow just now.

# The label of a frame that was kept, as options that a process can set.
label() { sed -n 's/.*options=//p' "/kept$1.text"; }

# `attempt LENGTH COMMAND...`
attempt() {
	length=$1
	shift
	echo "$length: $("$@" 2>&1 | tr '\n' ' ')"
}

# By its own sockets, in a family.
directly() {
	to=10.77.0.1
	[ $1 = 6 ] && to=fd00:77::1
	attempt 213 talk inject eth0 /kept$1 213 same
	attempt 215 talk inject eth0 /kept$1 215 strip
	attempt 207 talk send udp $1 $to 7400 207 --options $(label $1) --wait 1
	attempt 209 talk send udp $1 $to 7400 209 --options $(label $1) --bind 4000 --wait 1
	attempt 201 talk send udp $1 $to 7400 201 --wait 1
	attempt 205 talk send udp $1 $to 7400 205 --mark 1 --wait 1
	attempt 211 talk send udp $1 $to 7400 4211 --wait 1
	attempt 217 talk begin $1 $to 7400 4217 --wait 500
	attempt 203 talk send tcp $1 $to 7400 203 --wait 1500
	attempt 200 talk send udp $1 $to 7300 200 --wait 1
	attempt 202 talk send tcp $1 $to 7300 202 --wait 5000
}

# As root of a namespace of its own, does what is written to /order, and answers.
serve() {
	echo $$ > /box
	while read -r order < /order; do
		eval "$order" > /answer 2>&1
		echo $? > /done
	done
}

# By a device and an address that somebody has given the namespace.
inside() {
	ip link set lo up
	ip link set $1 up
	ip addr add $2/32 dev $1
	ip route add 10.77.0.0/24 dev $1
	attempt 229 talk inject $1 /kept4 229 same
	attempt 231 talk inject $1 /kept4 231 addresses
	attempt 233 talk inject $1 /kept4 233 strip
	attempt 227 talk send udp 4 10.77.0.1 7400 227 --options $(label 4) --wait 1
	attempt 221 talk send udp 4 10.77.0.1 7400 221 --wait 1
	attempt 225 talk send udp 4 10.77.0.1 7400 225 --mark 1 --wait 1
	attempt 223 talk send tcp 4 10.77.0.1 7400 223 --wait 1500
	attempt 220 talk send udp 4 10.77.0.1 7300 220 --wait 1
	attempt 222 talk send tcp 4 10.77.0.1 7300 222 --wait 5000
}

# A class of a filter is what a packet carries within a machine: any SID, that of the honest sender among them.
classes() {
	tc qdisc add dev $1 clsact 2> /dev/null # unless the device has one already
	for sid in $(seq 44 64); do
		tc filter add dev $1 egress prio 9 matchall classid 1:$(printf %x $sid) || return
		talk send udp 4 10.77.0.1 7400 235 --wait 1
		tc filter del dev $1 egress prio 9 || return
	done
}

# By a namespace within, whose packets come out of this one without a socket.
forwarded() {
	echo 1 > /proc/sys/net/ipv4/ip_forward
	unshare -n sh -c '. /names; . /taken.sh; further' &
	sleep 0.5
	ip link add nb type veth peer name nc
	ip link set nc netns $!
	ip link set nb up
	ip addr add 10.77.0.44/32 dev nb
	ip route add 10.77.0.43/32 dev nb
	# A class where they come in is what they are passed on with.
	until [ -e /further ]; do sleep 0.1; done
	tc qdisc add dev nb clsact 2> /dev/null
	for sid in $(seq 44 64); do
		tc filter add dev nb ingress prio 9 matchall classid 1:$(printf %x $sid) || return
		sleep 0.4
		tc filter del dev nb ingress prio 9 || return
	done
	touch /classes
	wait
}
further() {
	until ip link set nc up 2> /dev/null; do sleep 0.1; done
	sleep 0.5
	ip addr add 10.77.0.43/32 dev nc
	ip route add 10.77.0.44/32 dev nc
	ip route add 10.77.0.0/24 via 10.77.0.44 dev nc
	attempt 237 talk send udp 4 10.77.0.1 7400 237 --wait 1
	attempt 239 talk send udp 4 10.77.0.1 7400 239 --options $(label 4) --wait 1
	attempt 224 talk send udp 4 10.77.0.1 7300 224 --wait 1
	touch /further
	until [ -e /classes ]; do talk send udp 4 10.77.0.1 7400 241 --wait 1; done
}
