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

# A link of 1500 without a router.
join_veth() {
	ip link add va type veth peer name vb
	ip link set vb netns $space
	address $$ va 3 2
	address $space vb 3 1
}

# A VLAN and tunnels on that link, and bridges on one of their own.
join_stacked() {
	ip addr add 10.99.0.1/24 dev va
	ip_in $space addr add 10.99.0.2/24 dev vb
	ip link add link va name vlan type vlan id 5
	ip_in $space link add link vb name vlan type vlan id 5
	ip link add vc type veth peer name vd
	ip link set vd netns $space
	ip link add bridge type bridge
	ip_in $space link add bridge type bridge
	ip link set vc up master bridge
	ip_in $space link set vd up master bridge
	tunnel ipip0 type ipip
	tunnel vxlan mtu 1450 type vxlan id 5 dstport 4789
	tunnel gre1 type gre
	tunnel sit1 type sit
	network=5
	for device in vlan bridge ipip0 vxlan gre1 sit1; do
		address $$ $device $network 2
		address $space $device $network 1
		network=$((network + 1))
	done
}

# `tunnel NAME WORDS...` between the ends of that link.
tunnel() {
	name=$1
	shift
	ip link add $name "$@" local 10.99.0.1 remote 10.99.0.2
	ip_in $space link add $name "$@" local 10.99.0.2 remote 10.99.0.1
}

# Two containers on a bridge of this namespace: the clients are in one of them.
join_containers() {
	ip link add containers type bridge
	ip link set containers up
	for container in "$router ra" "$space rb"; do
		set -- $container
		ip link add host$2 type veth peer name $2
		ip link set $2 netns $1
		ip link set host$2 up master containers
	done
	address $router ra 11 2
	address $space rb 11 1
}

# Two containers between which this namespace routes, likewise.
join_routed() {
	echo 1 > /proc/sys/net/ipv4/ip_forward
	echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
	number=12
	for container in "$router qa 13" "$space qb 12"; do
		set -- $container
		ip link add host$2 type veth peer name $2
		ip link set $2 netns $1
		address $1 $2 $number 1
		address $$ host$2 $number 9
		for zone in 81 82; do
			ip_in $1 route add 10.$zone.$3.0/24 via 10.$zone.$number.9
			ip_in $1 route add fd00:$zone:$3::/64 via fd00:$zone:$number::9
		done
		number=13
	done
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

# Sends everything to the servers of a network, from this namespace or that of `from`, by both families or those in `families`:
# `speak NETWORK LENGTHS...`. What is sent from a level above theirs is refused.
speak() {
	network=$1 by=${families:-4 6}
	shift
	# Until the daemon has seen the clients' namespace, they send nothing.
	for attempt in $(seq 100); do
		in_space ${from:-$$} tollgate run --context system_u:system_r:talker:s1 -- \
			talk sizes ${by%% *} $(host 82 ${by%% *} $network) 7000 1 --wait 300 > /dev/null 2>&1 && break
		sleep 0.1
	done
	for zone in 81 82; do
		for family in $by; do
			echo "cell $zone $family $network"
			in_space ${from:-$$} tollgate run --context system_u:system_r:talker:s2 -- \
				talk send udp $family $(host $zone $family $network) 7000 8 --wait 200
			in_space ${from:-$$} tollgate run --context system_u:system_r:talker:s1 -- sh -c "
				talk sizes $family $(host $zone $family $network) 7000 $* --df
				talk sizes $family $(host $zone $family $network) 7000 $* --no-df
				talk send udp $family $(host $zone $family $network) 7000 12000 --gso 1200 --wait 1000
				talk bulk $family 70$zone 1000000 5 --to $(host $zone $family $network)"
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
	in_space $1 talk capture $2 ${seconds:-4} > /tmp/captured &
	capturing=$!
	shift 2
	sleep 1
	"$@"
	wait $capturing
	cat /tmp/captured
}
