# The script of power.rs's guests. The names of the load's files begin with the letters of their labels.
KINDS="ext4 xfs btrfs"
mounts() {
	set -- a b c
	for kind in $KINDS; do
		mkdir -p /srv/$kind
		options=noatime
		# The label is to be lost, not the file.
		[ $kind = xfs ] || options=$options,commit=1
		mount -t $kind -o $options /dev/vd$1 /srv/$kind || echo "$kind cannot be mounted"
		shift
	done
}
unmounts() {
	for kind in $KINDS; do
		umount /srv/$kind || umount -l /srv/$kind
	done
}
# Compares labels with names, and unlabelled files with listed ones; the list has one name per file.
check() {
	tollgate label lost >/listed 2>/dev/null
	for kind in $KINDS; do
		[ -d /srv/$kind/load ] || continue
		tollgate label get -R /srv/$kind/load >/labels
		find /srv/$kind/load -exec stat -c '%i %n' {} + >/inodes
		awk -v kind=$kind '
			FILENAME == "/inodes" { inode[$2] = $1; next }
			FILENAME == "/listed" { if ($2 in inode) listed[inode[$2]] = 1; next }
			{
				split($1, context, ":"); type = context[3]; depth = split($2, names, "/"); name = names[depth]
				own = name ~ /^[a-z][0-9]+$/ ? substr(name, 1, 1) : ""
				files++
				if (type == "unlabeled_t") {
					lost++; found = 0
					for (path = $2; path != ""; sub(/\/[^\/]*$/, "", path))
						if (path in inode && inode[path] in listed) found = 1
					if (!found) { unlisted++; print "not listed: " $0 }
				} else if (own != "" && substr(type, 1, 1) != own) { wrong++; print "wrong: " $0 }
				else kept++
			}
			END { print "checked", kind, files + 0, kept + 0, lost + 0, unlisted + 0, wrong + 0 }' /inodes /listed /labels
	done
}
load() { # SEED
	for kind in $KINDS; do
		rm -rf /srv/$kind/load
		mkdir -p /srv/$kind/load
		cd /srv/$kind/load
		mkdir open tool source open/below tool/below
		chmod -R 777 .
		tollgate label set $(of tool) tool tool/below >/dev/null
		tollgate label set $(of source) source >/dev/null
		tollgate label set $(of open) open open/below >/dev/null
		cd /
	done
	sync
	LOADS=
	for kind in $KINDS; do
		as worker /power /srv/$kind/load $(($1 + ${#kind})) &
		LOADS="$LOADS $!"
	done
	for kind in $KINDS; do
		until ls /srv/$kind/load/tool | grep -q t; do sleep 0.1; done
	done
}
