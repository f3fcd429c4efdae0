import { join } from 'node:path';
import type { ClusterEngine } from '../cluster-engine.ts';
import type { Shell } from '../shell.ts';
import { containerdPlaces } from './containerd-config.ts';

/** The containerd namespace of Kubernetes. */
const NAMESPACE = 'k8s.io';
const IMPORT_MS = 15 * 60_000;

/** containerd as the engine of a cluster. Pods have images of their own. */
export function containerdPods(shell: Shell): ClusterEngine {
  const { socket } = containerdPlaces(join(shell.places.data, 'containerd'), join(shell.places.run, 'containerd'));
  const inside = join(shell.places.data, 'pod-images.tar');
  const ctr = async (args: readonly string[], signal: AbortSignal, timeoutMs = 60_000) => {
    const argv = ['ctr', '--address', socket, '--namespace', NAMESPACE, '--connect-timeout', '5s', ...args];
    return (await shell.run(argv, { signal, timeoutMs })).stdout;
  };
  const lines = (text: string) => text.split('\n').filter((line) => line !== '');

  return {
    socket,
    async loadImages(archive, signal) {
      try {
        await shell.copyIn(archive, `${inside}.gz`, 0o600, signal);
        // ctr 1.6 reads uncompressed archives only.
        await shell.run(['gzip', '-d', '-f', `${inside}.gz`], { signal, timeoutMs: IMPORT_MS });
        await ctr(['images', 'import', '--digests', inside], signal, IMPORT_MS);
      } finally {
        for (const file of [inside, `${inside}.gz`]) await shell.remove(file);
      }
    },
    async endPods(how, signal) {
      for (const task of lines(await ctr(['tasks', 'ls', '-q'], signal))) {
        await ctr(['tasks', 'delete', '--force', task], signal);
      }
      if (how === 'stop') return;
      for (const container of lines(await ctr(['containers', 'ls', '-q'], signal))) {
        await ctr(['containers', 'delete', container], signal);
      }
    },
  };
}
