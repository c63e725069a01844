# Run in the new system once it is installed.
echo tollgate >/etc/hostname
echo '/dev/vda / ext4 defaults 0 1' >/etc/fstab
: >/etc/machine-id
# Some person.
useradd --create-home --shell /bin/bash ann
echo 'ann:secret' | chpasswd
