import { createInterface } from 'node:readline';
import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import type { ClusterEngine } from '../cluster-engine.ts';
import type { Shell } from '../shell.ts';
import { mobyPlaces } from './moby-config.ts';
import { askMoby, callMoby, mobyRefusal, textOf } from './moby-http.ts';
import { failureIn } from './moby-images.ts';

/** A label of every container of a pod, including the sandbox. */
const LABEL = 'io.kubernetes.pod.uid';
const GRACE_SECONDS = 5;
/** Unpacking a large layer prints nothing for a while. */
const LOAD_SILENCE_MS = 5 * 60_000;

/** moby as the engine of a cluster. Pods share the images of all users. */
export function mobyPods(shell: Shell): ClusterEngine {
  const { socket } = mobyPlaces(shell.places);
  const local = () => shell.localSocket(socket);

  return {
    socket,
    async loadImages(archive, signal) {
      const call = { method: 'POST', path: '/images/load', file: archive, silenceMs: LOAD_SILENCE_MS } as const;
      const answer = await callMoby(await local(), call, signal);
      if (answer.statusCode !== 200) throw mobyRefusal(answer.statusCode ?? 0, await textOf(answer));
      for await (const line of createInterface({ input: answer })) {
        const failure = failureIn(line);
        if (failure !== undefined) throw new RdError('ERR_DRIVER_FAILED', `dockerd cannot load images: ${failure}`);
      }
      if (signal.aborted) throw new RdError('ERR_CANCELLED', 'loading images was cancelled');
    },
    async endPods(how, signal) {
      const at = await local();
      const filters = encodeURIComponent(JSON.stringify({ label: [LABEL] }));
      const list = await askMoby(at, { method: 'GET', path: `/containers/json?all=1&filters=${filters}` }, signal);
      const ids = (Array.isArray(list) ? list : []).flatMap((container) =>
        isObject(container) && typeof container.Id === 'string' ? [container.Id] : [],
      );
      await Promise.all(
        ids.map((id) =>
          how === 'stop'
            ? askMoby(at, { method: 'POST', path: `/containers/${id}/stop?t=${GRACE_SECONDS}` }, signal)
            : askMoby(at, { method: 'DELETE', path: `/containers/${id}?force=1&v=1` }, signal),
        ),
      );
    },
  };
}
