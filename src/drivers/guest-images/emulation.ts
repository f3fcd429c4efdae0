/** Programs of these architectures run in the guest: their emulators, and class and machine in the header of an ELF file. */
const EMULATED = { aarch64: { bits: '02', machine: 'b7' }, arm: { bits: '01', machine: '28' } };
const NAMES = Object.keys(EMULATED);

/** Of a package with emulators for some forty architectures, 465 MB, the two above. dpkg goes by the last option that fits. */
export const EMULATOR_OPTIONS: readonly string[] = [
  'path-exclude=/usr/bin/qemu-*',
  'path-exclude=/usr/lib/binfmt.d/qemu-*',
  ...NAMES.flatMap((name) => [`path-include=/usr/bin/qemu-${name}`, `path-include=/usr/bin/qemu-${name}-static`]),
];

const repeated = (byte: string, count: number) => `\\x${byte}`.repeat(count);
/** Everything but the ABI, and shared objects like programs. */
const MASK = `${repeated('ff', 7)}${repeated('00', 1)}${repeated('ff', 8)}${repeated('fe', 1)}${repeated('ff', 3)}`;

/**
 * Registers the emulators with the kernel. `F`: as open files, so that containers, which do not have them, can use them; `P`: with the name
 * that the program was called by; `O`: also for programs that may only be executed.
 */
const REGISTRATION = Object.entries(EMULATED)
  .map(([name, { bits, machine }]) => {
    const magic = `\\x7fELF\\x${bits}\\x01\\x01${repeated('00', 9)}\\x02\\x00\\x${machine}\\x00`;
    return `:qemu-${name}:M::${magic}:${MASK}:/usr/bin/qemu-${name}:OPF\n`;
  })
  .join('');

/** Instead of systemd's own unit, which all others wait for. */
const UNIT_TEXT = `[Unit]
Description=Emulators for programs of other architectures
DefaultDependencies=no
Requires=proc-sys-fs-binfmt_misc.mount
After=proc-sys-fs-binfmt_misc.mount

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/lib/systemd/systemd-binfmt
`;

export const EMULATION_FILES = [
  { path: '/etc/binfmt.d/rdctl.conf', mode: 0o644, text: REGISTRATION },
  { path: '/etc/systemd/system/systemd-binfmt.service', mode: 0o644, text: UNIT_TEXT },
];

/** In Debian 12, static emulators have another name. */
export const EMULATION_SCRIPT = `for name in ${NAMES.join(' ')}; do
  [ -e "$root/usr/bin/qemu-$name" ] || ln -s "qemu-$name-static" "$root/usr/bin/qemu-$name"
  test -x "$root/usr/bin/qemu-$name"
done
`;
