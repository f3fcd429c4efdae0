import { createHash } from 'node:crypto';
import { EMULATION_FILES, EMULATION_SCRIPT, EMULATOR_OPTIONS } from './emulation.ts';
import { NAME_FILES, NAMES_UNIT } from './host-names.ts';

/**
 * How a guest image is built from Debian packages. The texts run in the new root or in the guest; a change here affects images that are
 * built later, and no existing machine.
 */

/** Size of the root disk. Everything that grows is on the data disk of the machine. */
export const ROOT_BYTES = 3 * 1024 ** 3;

/** Packages of every guest; `apparmor` is not among them, and the kernel is told so. */
const PACKAGES: readonly string[] = [
  'systemd',
  'systemd-sysv',
  'udev',
  'dbus',
  'kmod',
  'initramfs-tools',
  'openssh-server',
  'docker.io',
  'containerd',
  'iptables',
  'iproute2',
  'ca-certificates',
  'dnsmasq-base',
  'e2fsprogs',
  'procps',
  'sshfs',
];

// Packaged apart from the engine since Debian 13.
const CLIENTS = ['docker-cli', 'docker-buildx', 'docker-compose'];

/** Debian suites that a guest can be built from, oldest first. */
export const SUITE_NAMES = ['bookworm', 'trixie', 'sid'] as const;
export type Suite = (typeof SUITE_NAMES)[number];
export const DEFAULT_SUITE: Suite = 'trixie';

/** By suite, the name of the image and the packages that it needs beyond those of every guest. */
export const SUITES: Readonly<Record<Suite, { name: string; packages: readonly string[] }>> = {
  bookworm: { name: 'debian-12', packages: ['qemu-user-static'] },
  trixie: { name: 'debian-13', packages: [...CLIENTS, 'qemu-user'] },
  sid: { name: 'debian-sid', packages: [...CLIENTS, 'qemu-user'] },
};

/** Kernels to choose from. Machines look for the features in an image; `suffix` is added to its name. */
export const KERNELS = {
  cloud: { suffix: '', packages: ['linux-image-cloud-amd64'], features: [] },
  generic: { suffix: '-generic', packages: ['linux-image-amd64'], features: ['9p'] },
} as const satisfies Record<string, { suffix: string; packages: readonly string[]; features: readonly string[] }>;
export type Kernel = keyof typeof KERNELS;

/** Packages of a guest. Their dependencies are installed too, their recommendations are not. */
export function packagesOf(suite: Suite, kernel: Kernel): readonly string[] {
  return [...PACKAGES, ...SUITES[suite].packages, ...KERNELS[kernel].packages];
}

/** Options of dpkg. Documentation and translations are left out: nobody reads them in a guest. */
export const PATH_OPTIONS: readonly string[] = [
  'path-exclude=/usr/share/doc/*',
  'path-exclude=/usr/share/man/*',
  'path-exclude=/usr/share/locale/*',
  ...EMULATOR_OPTIONS,
];

/** Where the guest finds what its host says at every boot. */
export const FIRMWARE_FOLDER = 'opt/rdctl';
/** Serial number of the data disk, which names it in the guest. */
export const DATA_SERIAL = 'rdctl-data';
/** Outside of every home directory, because one of this name may be that of the host's user. */
const AUTHORIZED_KEYS = '/etc/ssh/authorized_keys';
/** Root's own, for the same reason. */
const ROOT_HOME = '/var/root';
/** Where the data disk is mounted in the guest. */
const DATA_MOUNT = '/var/lib/rdctl';

/** Mounts the data disk in the guest (`mount`) and gives it back (`unmount`), as the boot does and as its host asks. */
export const DATA_SCRIPT = '/usr/lib/rdctl/data';

/**
 * The data disk is found by what it says itself, because the manager of devices is slow. A disk with nothing on it is formatted; one with
 * anything else is never touched. Once it is unmounted nothing of it is in memory, so that another may be there when it is mounted again.
 */
const DATA_TEXT = `#!/bin/sh
set -eu
find_disk() {
  for each in /sys/block/*; do
    if [ "$(cat "$each/serial" 2>/dev/null || true)" = '${DATA_SERIAL}' ]; then
      data=/dev/\${each##*/}
      return 0
    fi
  done
  return 1
}
tries=0
until find_disk && [ -b "$data" ]; do
  tries=$((tries + 1))
  [ "$tries" -lt 100 ] || { echo 'there is no data disk' >&2; exit 1; }
  sleep 0.1
done
case \${1:-} in
mount)
  if mountpoint -q ${DATA_MOUNT}; then exit 0; fi
  if [ "$(blkid -p -o value -s TYPE "$data" || true)" = '' ] && [ "$(head -c 1048576 "$data" | tr -d '\\0' | wc -c)" -eq 0 ]; then
    mke2fs -q -t ext4 -L ${DATA_SERIAL} -m 1 -E nodiscard "$data"
  fi
  e2fsck -p "$data" || [ "$?" -le 2 ]
  mkdir -p ${DATA_MOUNT}
  mount -o noatime,discard "$data" ${DATA_MOUNT}
  ;;
unmount)
  if mountpoint -q ${DATA_MOUNT}; then umount --recursive ${DATA_MOUNT}; fi
  sync
  udevadm settle
  blockdev --flushbufs "$data"
  ;;
*)
  echo 'usage: data mount|unmount' >&2
  exit 2
  ;;
esac
`;

/** Runs in the guest before everything that serves: takes keys and name from the firmware, and mounts the data disk. */
const BOOT_SCRIPT = `#!/bin/sh
set -eu
umask 077
modprobe qemu_fw_cfg
given=/sys/firmware/qemu_fw_cfg/by_name/${FIRMWARE_FOLDER}
cp "$given/authorized_key/raw" ${AUTHORIZED_KEYS}
cp "$given/host_key/raw" /etc/ssh/ssh_host_ed25519_key
hostname "$(cat "$given/hostname/raw")"
exec ${DATA_SCRIPT} mount
`;

const BOOT_UNIT = `[Unit]
Description=Keys, name and data disk as the host gives them
DefaultDependencies=no
After=systemd-remount-fs.service systemd-tmpfiles-setup-dev.service
Before=ssh.service basic.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/rdctl/boot
# What keeps it from coming up is told where its host looks.
StandardOutput=journal+console
StandardError=journal+console

[Install]
RequiredBy=ssh.service
`;

export interface RootFile {
  path: string;
  mode: number;
  text: string;
}

/** Files that are put into the root. */
export const ROOT_FILES: readonly RootFile[] = [
  { path: '/usr/lib/rdctl/boot', mode: 0o755, text: BOOT_SCRIPT },
  { path: DATA_SCRIPT, mode: 0o755, text: DATA_TEXT },
  { path: '/etc/systemd/system/rdctl-boot.service', mode: 0o644, text: BOOT_UNIT },
  {
    path: '/etc/systemd/network/10-host.network',
    mode: 0o644,
    // The bridges of the engines are Ethernet too, and have a kind.
    text: '[Match]\nType=ether\nKind=!*\n\n[Network]\nDHCP=ipv4\nLinkLocalAddressing=no\n',
  },
  ...NAME_FILES,
  ...EMULATION_FILES,
  { path: '/etc/fstab', mode: 0o644, text: '/dev/vda / ext4 defaults,noatime 0 1\n' },
  { path: '/etc/hostname', mode: 0o644, text: 'rdctl\n' },
  { path: '/etc/hosts', mode: 0o644, text: '127.0.0.1 localhost\n::1 localhost ip6-localhost\n' },
  { path: '/etc/machine-id', mode: 0o444, text: '' },
  // Instead of systemd's own, which makes a directory in the home directory that a root of the host may have.
  { path: '/etc/tmpfiles.d/provision.conf', mode: 0o644, text: '' },
  {
    path: '/etc/ssh/sshd_config.d/rdctl.conf',
    mode: 0o644,
    text: [
      'HostKey /etc/ssh/ssh_host_ed25519_key',
      `AuthorizedKeysFile ${AUTHORIZED_KEYS}`,
      'PermitUserRC no',
      'PermitRootLogin prohibit-password',
      'PasswordAuthentication no',
      'KbdInteractiveAuthentication no',
      'UsePAM no',
      'UseDNS no',
      'PrintMotd no',
      'MaxSessions 200',
      'MaxStartups 200',
      'StreamLocalBindUnlink yes',
      '',
    ].join('\n'),
  },
  {
    path: '/etc/udev/rules.d/40-rdctl.rules',
    mode: 0o644,
    text: 'SUBSYSTEM=="cpu", ACTION=="add", TEST=="online", ATTR{online}=="0", ATTR{online}="1"\n',
  },
  // The first root finds nothing but these disks; all else is loaded from there.
  { path: '/etc/initramfs-tools/conf.d/rdctl', mode: 0o644, text: 'MODULES=list\n' },
  { path: '/etc/initramfs-tools/modules', mode: 0o644, text: 'virtio_pci\nvirtio_blk\ncrc32c_generic\next4\n' },
  { path: '/etc/sysctl.d/40-rdctl.conf', mode: 0o644, text: 'net.ipv4.ip_forward=1\n' },
];

const ENABLED = ['systemd-networkd.service', 'ssh.service', 'rdctl-boot.service', NAMES_UNIT];
/** The service starts engines of its own, so that settings reach them. */
const DISABLED = ['docker.service', 'docker.socket', 'containerd.service', 'ssh.socket'];
const MASKED = [
  'systemd-networkd-wait-online.service',
  'apt-daily.timer',
  'apt-daily-upgrade.timer',
  'dpkg-db-backup.timer',
  'e2scrub_all.timer',
  'e2scrub_reap.service',
  'getty@tty1.service',
  'serial-getty@ttyS0.service',
  // Every program costs a guest without hardware virtualisation a part of a second of its start.
  'fstrim.timer',
  'systemd-pstore.service',
  'systemd-update-utmp.service',
  'systemd-update-utmp-runlevel.service',
  'systemd-repart.service',
  'modprobe@drm.service',
  'sys-kernel-config.mount',
  'sys-kernel-debug.mount',
  'sys-kernel-tracing.mount',
];

/** Where the finished root has the files that are the image. */
export const RESULTS = '/rdctl-image';
/** The one among them with what was installed: a line `NAME VERSION SHA256` for each package. */
export const PACKAGE_LIST = 'packages';

/** Where the script below is in the root while it runs. As an argument it would fill the messages of mmdebstrap. */
export const FINISH_PATH = '/rdctl-finish';
/**
 * Finishes the root and makes the disk of it, in the root itself: it runs where the new root belongs to root, in a user namespace too,
 * and there nothing of the home of the user can be reached. Argument: the root.
 */
export const FINISH_SCRIPT = `set -eu
root=$1
rm "$root${FINISH_PATH}"
: "\${RDCTL_ROOT_BYTES:?}"
rm -f "$root"/etc/ssh/ssh_host_*
mv "$root/root" "$root${ROOT_HOME}"
install -d -m 700 "$root/root"
sed -i 's,^\\(root:[^:]*:0:0:[^:]*\\):/root:,\\1:${ROOT_HOME}:,' "$root/etc/passwd"
grep -q '^root:.*:${ROOT_HOME}:' "$root/etc/passwd"
for unit in ${ENABLED.join(' ')}; do systemctl --root="$root" --quiet enable "$unit"; done
for unit in ${DISABLED.join(' ')}; do systemctl --root="$root" --quiet disable "$unit"; done
for unit in ${MASKED.join(' ')}; do systemctl --root="$root" --quiet mask "$unit"; done
${EMULATION_SCRIPT}chroot "$root" update-initramfs -u -k all
# A line for each package: name, version, and the checksum of its file.
chroot "$root" dpkg-query --show --showformat '\${Package}=\${Version}\\n' >"$root/tmp/installed"
chroot "$root" xargs apt-cache show <"$root/tmp/installed" | awk '
  /^Package: / { name = $2 }
  /^Version: / { version = $2 }
  /^SHA256: / { print name, version, $2 }
' | sort -u >"$root/tmp/${PACKAGE_LIST}"
test "$(wc -l <"$root/tmp/${PACKAGE_LIST}")" -eq "$(wc -l <"$root/tmp/installed")"
# What was installed is up to date, and the first boot need not see to it.
touch "$root/etc/.updated" "$root/var/.updated"
out=$(mktemp -d "\${root%/}.XXXXXX")
trap 'if mountpoint -q "$out/bare"; then umount "$out/bare"; fi && rm -rf "$out"' EXIT
cp "$root"/boot/vmlinuz-* "$out/vmlinuz"
cp "$root"/boot/initrd.img-* "$out/initrd"
mv "$root/tmp/${PACKAGE_LIST}" "$out/"
rm "$root/tmp/installed"
rm -rf "$root"/boot/* "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/var/log/*.log
# What is mounted in the root (proc, sys, dev) does not show through a mount of its directory alone.
mkdir "$out/bare"
mount --bind "$root" "$out/bare"
truncate -s "$RDCTL_ROOT_BYTES" "$out/disk.raw"
mke2fs -q -t ext4 -L rdctl-root -d "$out/bare" "$out/disk.raw"
qemu-img convert -f raw -O qcow2 "$out/disk.raw" "$out/disk.qcow2"
mkdir "$root${RESULTS}"
mv "$out/vmlinuz" "$out/initrd" "$out/disk.qcow2" "$out/${PACKAGE_LIST}" "$root${RESULTS}/"
`;

/** SHA-256 of what rdctl adds to the packages; lower-case hexadecimal. */
export const RECIPE_SUM = createHash('sha256')
  .update(JSON.stringify([ROOT_BYTES, PATH_OPTIONS, ROOT_FILES, FINISH_SCRIPT]))
  .digest('hex');
