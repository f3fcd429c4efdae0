import { RdError } from '../../errors.ts';
import type { EngineSpec } from '../driver.ts';

/**
 * Fails closed for what no engine here can do. Plans refuse these settings before; a stored value from another driver must
 * not be taken for an enforced one either.
 * @throws RdError `ERR_DRIVER_TERMINAL` naming the setting.
 */
export function refuseUnsupported(spec: EngineSpec): void {
  const wanted: [boolean, string, string][] = [
    [
      spec.webAssembly,
      'experimental.containerEngine.webAssembly.enabled is true, and this driver has no WebAssembly shims',
      'rdctl set --experimental.container-engine.web-assembly.enabled=false',
    ],
    [
      spec.name === 'moby' && spec.storageDriver === 'snapshotter',
      'containerEngine.mobyStorageDriver is snapshotter, which this driver does not support',
      'rdctl set --container-engine.moby-storage-driver=auto',
    ],
  ];
  for (const [refused, message, command] of wanted) {
    if (refused) throw new RdError('ERR_DRIVER_TERMINAL', message, { advice: `Switch it off: ${command}` });
  }
}
