import { RdError } from '../../../errors.ts';
import { hasShape, parseJson } from '../../../json.ts';
import type { ClusterSpec } from '../../driver.ts';
import { type ClusterEngine, type EngineArea, programFailure, type Shell } from '../../shell.ts';
import type { Health } from './api.ts';
import type { K3sPlaces } from './config.ts';

/** The release and spec that a cluster was started with. */
export interface StartedCluster {
  spec: ClusterSpec;
  /** `v1.33.6+k3s1` */
  release: string;
}

/**
 * Returns the record of a started cluster. It is written before anything runs and removed after everything has ended: while it exists, there may be
 * something to stop.
 */
export function clusterRecord(shell: Pick<Shell, 'read' | 'write' | 'remove'>, file: string) {
  return {
    async read(): Promise<StartedCluster | 'unreadable' | undefined> {
      const text = await shell.read(file);
      if (text === undefined) return undefined;
      const value = parseJson(text);
      // Root in a guest can write it.
      return hasShape(value, SAMPLE) && ENGINES.includes(value.spec.engine) ? value : 'unreadable';
    },
    write: (started: StartedCluster) => shell.write(file, `${JSON.stringify(started)}\n`),
    remove: () => shell.remove(file),
  };
}

const SAMPLE: StartedCluster = {
  spec: {
    version: '',
    port: 0,
    traefik: false,
    flannel: false,
    spinkube: false,
    localhostOnly: false,
    engine: 'moby',
  },
  release: '',
};

const ENGINES: readonly string[] = ['moby', 'containerd'];

const POLL_MS = 500;

/**
 * Waits until the cluster is ready, reporting the reason for the wait, and watches its process.
 * @throws RdError `ERR_DRIVER_FAILED` with the last lines of its log when it exits or times out; `ERR_CANCELLED`.
 */
export async function waitUntilReady(
  shell: Shell,
  name: string,
  health: () => Promise<Health>,
  { limitMs, onWait }: { limitMs: number; onWait?: (what: string) => void },
  signal: AbortSignal,
): Promise<void> {
  const deadline = shell.clock.now() + limitMs;
  for (;;) {
    if (signal.aborted) throw new RdError('ERR_CANCELLED', 'waiting for the cluster was canceled');
    const now = await health();
    if (now.ready) return;
    onWait?.(now.waiting);
    if ((await shell.find(name)).state !== 'running')
      throw await programFailure(shell, name, 'k3s exited during its start');
    if (shell.clock.now() >= deadline) {
      throw await programFailure(shell, name, `the cluster was not ready within ${limitMs / 1000} s: ${now.waiting}`);
    }
    await shell.clock.sleep(POLL_MS, signal);
  }
}

/**
 * Removes leftovers of k3s and its network from a dedicated machine: links, and packet filter rules, in which a port of a former pod would shadow the
 * port of a container. Only names that Kubernetes, flannel and the CNI plugins use.
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
    shell.log('debug', 'the engine did not stop the pods', { reason: error.message });
  }
}

/**
 * Returns the area of a cluster's leftovers. Volumes of pods are mounted there; a user directory behind one must not be deleted with its mount point.
 */
export function leftoverArea({ kubelet, state }: K3sPlaces, run: string): EngineArea {
  // No shim reports to this socket: those of pods belong to the engine.
  return { containerd: `${run}/k3s-none.sock`, state: `${run}/k3s-none`, directories: [kubelet, state] };
}
