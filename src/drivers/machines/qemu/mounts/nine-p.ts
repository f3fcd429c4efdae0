import { comma } from '../arguments.ts';
import { type MountWay, TAG } from './way.ts';

/** What the module takes; its transport limits the packets to less than that anyway. */
const MOST_BYTES = 2 ** 30;

const FEATURE = '9p';

/** A device of QEMU's own, which reads and writes with the rights that QEMU has. */
export const nineP: MountWay = {
  type: '9p',
  feature: FEATURE,
  // QEMU takes no state out while the guest holds files in there.
  migration: 'unmounted',
  obstacle: ({ features }) =>
    features.includes(FEATURE)
      ? undefined
      : '9p needs a guest image whose kernel has it (rdctl image build --kernel generic)',
  qemuArguments: ({ real }, { mount }) => [
    '-virtfs',
    `local,path=${comma(real)},mount_tag=${TAG},security_model=${mount.securityModel},multidevs=remap,id=home`,
  ],
  async mount({ home, spec, parts, signal }) {
    const { protocolVersion, msizeInKib, cacheMode } = spec.mount;
    const bytes = Math.min(msizeInKib * 1024, MOST_BYTES);
    const options = ['trans=virtio', `version=${protocolVersion}`, `msize=${bytes}`, `cache=${cacheMode}`];
    await parts.guest.run(['modprobe', '9pnet_virtio'], { signal });
    await parts.guest.run(['mount', '-t', '9p', '-o', options.join(','), '--', TAG, home.real], { signal });
  },
};
