# Shell functions for guests that talk with one another. `own` is this guest's number, 1 or 2.
other=$((3 - own))

# Debian's programs, with their own libraries.
mkdir /tools && tar -xf /tools.tar -C /tools
tool() {
	program=$1
	shift
	libraries=/tools/lib/x86_64-linux-gnu
	$libraries/ld-linux-x86-64.so.2 --library-path $libraries:/tools/usr/lib/x86_64-linux-gnu /tools/$program "$@"
}
ip() { tool bin/ip "$@"; }
tc() { tool sbin/tc "$@"; }
netlabelctl() { tool usr/sbin/netlabelctl "$@"; }

# Waits until the other guest is at the same point. Its name may not come twice.
meet() { talk meet eth0 "$1" 300; }

# Addresses in three networks of IPv4 and one of IPv6.
networks="0 2 5"
join() {
	echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad
	ip link set eth0 up
	for network in $networks; do ip addr add 10.77.$network.$own/24 dev eth0; done
	ip addr add fd00:77::$own/64 dev eth0
}

# `as LEVEL COMMAND...` runs a command at a level.

# The kernel's SELinux enforces the image /policy.
under_selinux() {
	as() {
		level=$1
		shift
		(printf system_u:system_r:talker:$level > /proc/self/attr/exec && exec "$@")
	}
	mount -t selinuxfs none /sys/fs/selinux &&
		dd if=/policy of=/sys/fs/selinux/load bs=16M 2> /dev/null && echo 1 > /sys/fs/selinux/enforce
}

# Tollgate enforces /policy, and labels what is sent as /network.toml says.
under_tollgate() {
	as() {
		level=$1
		shift
		tollgate run --context system_u:system_r:talker:$level -- "$@"
	}
	grep -q ' /sys/fs/bpf ' /proc/mounts || mount -t bpf none /sys/fs/bpf
	tollgate enforce --network /network.toml /policy
}

# NetLabel labels what is sent to the networks: with CIPSO's tags 1, 2 and 5, one in each, and with CALIPSO.
netlabel() {
	netlabelctl cipsov4 add pass doi:1 tags:1,2,5 && netlabelctl cipsov4 add pass doi:2 tags:2,1,5 &&
		netlabelctl cipsov4 add pass doi:5 tags:5,2,1 && netlabelctl calipso add pass doi:1 &&
		netlabelctl map del default &&
		netlabelctl map add default address:10.77.0.0/24 protocol:cipsov4,1 &&
		netlabelctl map add default address:10.77.2.0/24 protocol:cipsov4,2 &&
		netlabelctl map add default address:10.77.5.0/24 protocol:cipsov4,5 &&
		netlabelctl map add default address:0.0.0.0/0 protocol:unlbl &&
		netlabelctl map add default address:fd00:77::/64 protocol:calipso,1 &&
		netlabelctl map add default address:::/0 protocol:unlbl
}

# Who sends and who receives. A sender is known by the length of what it sends, from 100 on, a receiver by its port.
senders="s0 s1 s1:c0,c2 s3 s3:c0.c5"
receivers="s0 s1 s1:c0.c5 s3:c0.c15"

# Starts all receivers, and returns when they are ready.
hear() {
	mkdir -p /tmp/heard
	port=7000
	for level in $receivers; do
		for family in 4 6; do
			for protocol in udp tcp icmp; do
				number=$port
				[ $protocol = icmp ] && number=0
				as $level talk recv $protocol $family $number 600 > "/tmp/heard/$protocol$family $level" 2>&1 &
			done
		done
		port=$((port + 1))
	done
	for attempt in $(seq 300); do
		[ $(cat /tmp/heard/* | grep -c ready) = 24 ] && return
		sleep 0.1
	done
	cat /tmp/heard/*
	return 1
}

# Sends everything to all receivers of the other guest.
say() {
	length=100
	for level in $senders; do
		for address in 10.77.0 10.77.2 10.77.5 fd00:77:; do
			family=4
			to=$address.$other
			[ $address = fd00:77: ] && family=6 to=$address:$other
			for port in 7000 7001 7002 7003; do
				for protocol in udp tcp; do
					echo "$level $address $port $(as $level talk send $protocol $family $to $port $length --wait $([ $protocol = udp ] && echo 1 || echo 2000) 2>&1)"
				done
			done
			echo "$level $address icmp $(as $level talk send icmp $family $to $length $length --wait 200 2>&1)"
		done
		length=$((length + 1))
	done
}

# Prints what all receivers have received.
heard() {
	sleep 1
	killall talk
	for file in /tmp/heard/*; do sed "s|^|${file##*/} |" "$file"; done
}
