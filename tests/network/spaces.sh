# Shell functions, beside names.sh, for one machine with another network namespace, joined to its own by a link as another
# machine would be: `space` is a process there.

# Runs a command in the other namespace.
there() { nsenter -t $space -n "$@"; }
ip_there() { there $libraries/ld-linux-x86-64.so.2 --library-path $libraries:/tools/usr/lib/x86_64-linux-gnu /tools/bin/ip "$@"; }
as_there() {
	level=$1
	shift
	there tollgate run --context system_u:system_r:talker:$level -- "$@"
}

# Joins them: 10.77.0.1 and 2, fd00:77::1 and 2. The argument is the link's MTU.
join_space() {
	unshare -n sleep 10000 &
	space=$!
	sleep 0.2
	libraries=/tools/lib/x86_64-linux-gnu
	ip link add va mtu $1 type veth peer name vb mtu $1
	ip link set vb netns $space
	ip link set lo up
	ip_there link set lo up
	ip addr add 10.77.0.1/24 dev va
	ip addr add fd00:77::1/64 dev va nodad
	ip link set va up
	ip_there addr add 10.77.0.2/24 dev vb
	ip_there addr add fd00:77::2/64 dev vb nodad
	ip_there link set vb up
}

# Starts receivers at s1 in the other namespace, and returns when they are ready and packets there have labels.
hear_there() {
	mkdir -p /tmp/heard
	for family in 4 6; do
		for protocol in udp tcp icmp; do
			number=7000
			[ $protocol = icmp ] && number=0
			as_there s1 talk recv $protocol $family $number 900 > /tmp/heard/$protocol$family 2>&1 &
		done
	done
	for attempt in $(seq 300); do
		[ $(cat /tmp/heard/* | grep -c ready) = 6 ] && break
		sleep 0.1
	done
	# The daemon has seen the namespace by then, and attaches programs there.
	for attempt in $(seq 100); do
		as s1 talk send udp 4 10.77.0.2 7000 1 --wait 1 > /dev/null 2>&1
		grep -q length=1 /tmp/heard/udp4 && return
		sleep 0.1
	done
	cat /tmp/heard/*
	return 1
}

# `row LEVEL ODD`: sends one of each kind. ODD is added to lengths, so that receivers tell the rows apart.
row() {
	for family in 4 6; do
		to=10.77.0.2
		[ $family = 6 ] && to=fd00:77::2
		as $1 talk send udp $family $to 7000 $((100 + $2)) --wait 200
		as $1 talk send udp $family $to 7000 $((9000 + $2)) --wait 200
		as $1 talk send udp $family $to 7000 $((5 * (1000 + $2))) --gso $((1000 + $2)) --wait 200
		as $1 talk send tcp $family $to 7000 $((100 + $2)) --wait 2000
		as $1 talk begin $family $to 7000 $((4000 + $2)) --bind $((50000 + $2)) --wait 1000
		as $1 talk send tcp $family $to 7000 $((60000 + $2)) --wait 2000
		as $1 talk send icmp $family $to 7 $((100 + $2)) --wait 500
		as $1 talk send icmp $family $to 7 $((9000 + $2)) --wait 500
	done
}

heard_there() {
	sleep 1
	killall talk
	for file in /tmp/heard/*; do sed "s|^|${file##*/} |" "$file"; done
}
