# Shell functions, beside names.sh and spaces.sh, for paths with links of several lengths and kinds: between this namespace and
# another one (`space`), past a router (`router`). Each link has addresses in a network with levels (81), and in one with sealed
# labels (82).

in_space() {
	process=$1
	shift
	nsenter -t $process -n "$@"
}
ip_in() {
	process=$1
	shift
	in_space $process $libraries/ld-linux-x86-64.so.2 --library-path $libraries:/tools/usr/lib/x86_64-linux-gnu /tools/bin/ip "$@"
}

begin_spaces() {
	libraries=/tools/lib/x86_64-linux-gnu
	unshare -n sleep 10000 & space=$!
	unshare -n sleep 10000 & router=$!
	unshare -n sleep 10000 & cable=$!
	sleep 0.3
	for process in $$ $router $space; do ip_in $process link set lo up; done
	in_space $router sh -c 'echo 1 > /proc/sys/net/ipv4/ip_forward; echo 1 > /proc/sys/net/ipv6/conf/all/forwarding'
	mkdir -p /etc/tollgate && tollgate net key new --file /etc/tollgate/network.keys
}

# `link NAME MTU PROCESS DEVICE PROCESS DEVICE` joins two namespaces as a wire would. What comes by veth without a socket is from
# a namespace whose root may have written it, so its levels are refused; what comes by these is not.
link() {
	ip_in $cable link add $1 mtu $2 type dummy
	ip_in $cable link set $1 up
	ip_in $cable link add $4 link $1 type macvlan mode bridge
	ip_in $cable link add $6 link $1 type macvlan mode bridge
	ip_in $cable link set $4 netns $3
	ip_in $cable link set $6 netns $5
}

# `address PROCESS DEVICE NETWORK HOST`
address() {
	for zone in 81 82; do
		ip_in $1 addr add 10.$zone.$3.$4/24 dev $2
		ip_in $1 addr add fd00:$zone:$3::$4/64 dev $2 nodad
	done
	ip_in $1 link set $2 up
}

# A link of 1500 to the router, and one of 1400 beyond it.
join_path() {
	link near 1500 $$ va $router ra
	link far 1400 $router rb $space vb
	address $$ va 1 1
	address $router ra 1 2
	address $router rb 2 2
	address $space vb 2 1
	for zone in 81 82; do
		ip route add 10.$zone.2.0/24 via 10.$zone.1.2
		ip route add fd00:$zone:2::/64 via fd00:$zone:1::2
		ip_in $space route add 10.$zone.1.0/24 via 10.$zone.2.2
		ip_in $space route add fd00:$zone:1::/64 via fd00:$zone:2::2
	done
	# A router of Linux drops levels in domains that it does not know.
	netlabelctl cipsov4 add pass doi:1 tags:1,2,5 && netlabelctl calipso add pass doi:1
}

# A server's address: `host ZONE FAMILY NETWORK`.
host() {
	case $2 in
		4) echo 10.$1.$3.1 ;;
		6) echo fd00:$1:$3::1 ;;
	esac
}

# Starts servers at s1 in the other namespace, and returns when they are ready and packets there have labels: `serve NETWORK`.
serve() {
	there tollgate run --context system_u:system_r:talker:s1 -- sh -c '
		for family in 4 6; do
			talk echo udp $family 7000 2000 --no-df &
			for zone in 81 82; do
				while :; do talk bulk $family 70$zone 1000000 2000; done &
			done
		done
		wait' > /tmp/served 2>&1 &
	for attempt in $(seq 300); do
		[ $(grep -c ready /tmp/served) = 6 ] && break
		sleep 0.1
	done
	for attempt in $(seq 100); do
		as s1 talk sizes 4 10.82.$1.1 7000 1 --wait 100 > /dev/null 2>&1 && return
		sleep 0.1
	done
	cat /tmp/served
	return 1
}

# Sends everything to the servers of a network: `speak NETWORK LENGTHS...`.
speak() {
	network=$1
	shift
	for zone in 81 82; do
		for family in 4 6; do
			echo "cell $zone $family $network"
			as s1 sh -c "
				talk sizes $family $(host $zone $family $network) 7000 $* --df
				talk sizes $family $(host $zone $family $network) 7000 $* --no-df
				talk send udp $family $(host $zone $family $network) 7000 12000 --gso 1200 --wait 1000
				talk bulk $family 70$zone 1000000 20 --to $(host $zone $family $network)"
		done
	done
}

# What the kernel says it has lost in a namespace: `errors NAME PROCESS`.
errors() {
	in_space $2 sh -c "cat /proc/net/snmp /proc/net/netstat" | sed "s/^/$1 /"
	in_space $2 sh -c "cat /proc/net/snmp6" | sed "s/^/$1 /"
}

# Captures what arrives on a device of a namespace while an act runs: `seen PROCESS DEVICE ACT...`.
seen() {
	in_space $1 talk capture $2 4 > /tmp/captured &
	capturing=$!
	shift 2
	sleep 1
	"$@"
	wait $capturing
	cat /tmp/captured
}
