import { RdError } from '../../../errors.ts';
import type { ClusterEngine } from '../../cluster-engine.ts';
import type { EngineArea, Shell } from '../../shell.ts';
import type { K3sPlaces } from './places.ts';

/**
 * Removes what k3s and its network leave in a dedicated machine: links, and packet filter rules, where a port of a former pod would shadow
 * the port of a container. Only names that Kubernetes, flannel and the CNI plugins use.
 */
export const NETWORK_SCRIPT = `set -u
for link in cni0 flannel.1 flannel-wg flannel-wg-v6 flannel-v6.1 kube-ipvs0; do
  [ -e "/sys/class/net/$link" ] && ip link delete "$link" 2>/dev/null
done
for family in iptables ip6tables; do
  command -v "$family-save" >/dev/null || continue
  rules=$("$family-save") || continue
  case $rules in *KUBE-*|*CNI-*|*FLANNEL*|*flannel*) ;; *) continue ;; esac
  printf '%s\\n' "$rules" | grep -v -e KUBE- -e CNI- -e FLANNEL -e flannel | "$family-restore" || exit 1
done
exit 0
`;

/** Ends pods while the engine responds; without the engine their containers have already ended. */
export async function endPods(
  shell: Pick<Shell, 'log'>,
  engine: ClusterEngine,
  how: 'stop' | 'remove',
  signal: AbortSignal,
): Promise<void> {
  try {
    await engine.endPods(how, signal);
  } catch (error) {
    if (!(error instanceof RdError) || error.code === 'ERR_CANCELLED') throw error;
    shell.log('debug', 'the engine did not end the pods', { reason: error.message });
  }
}

/** Volumes of pods are mounted there; a user directory behind one must not be deleted with its mount point. */
export function mountsOf({ kubelet, state }: K3sPlaces, run: string): EngineArea {
  // No shim reports to this socket: those of pods belong to the engine.
  return { containerd: `${run}/k3s-none.sock`, state: `${run}/k3s-none`, directories: [kubelet, state] };
}
