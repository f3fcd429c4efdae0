import { RdError } from '../../errors.ts';
import { isObject } from '../../json.ts';
import { PRODUCT } from '../../product.ts';
import type { Companion, CompanionContainers } from '../driver.ts';
import { askMoby } from './moby-http.ts';

/** Seconds that a container has to end by itself. */
const GRACE_SECONDS = 10;
const ID = `${PRODUCT.name}.companion`;
const IMAGE = `${PRODUCT.name}.companion.image`;

interface Found extends Companion {
  container: string;
  running: boolean;
}

/** Containers with a restart policy of dockerd, so that they come back with it; found by their labels. */
export function mobyCompanions(socket: () => Promise<string>): CompanionContainers {
  async function find(signal: AbortSignal): Promise<Found[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [ID] }));
    const list = await askMoby(
      await socket(),
      { method: 'GET', path: `/containers/json?all=1&filters=${filters}` },
      signal,
    );
    return (Array.isArray(list) ? list : []).flatMap((container) => {
      if (!isObject(container) || typeof container.Id !== 'string' || !isObject(container.Labels)) return [];
      const { [ID]: id, [IMAGE]: image } = container.Labels;
      if (typeof id !== 'string' || typeof image !== 'string') return [];
      return [
        {
          id,
          image,
          container: container.Id,
          running: container.State === 'running' || container.State === 'restarting',
        },
      ];
    });
  }

  async function remove(id: string, signal: AbortSignal): Promise<void> {
    const at = await socket();
    for (const { container } of (await find(signal)).filter((found) => found.id === id)) {
      const stop = `/containers/${container}/stop?t=${GRACE_SECONDS}`;
      await askMoby(at, { method: 'POST', path: stop }, signal);
      await askMoby(at, { method: 'DELETE', path: `/containers/${container}?force=1&v=1` }, signal);
    }
  }

  return {
    async list(signal) {
      return (await find(signal)).map(({ id, image }) => ({ id, image }));
    },
    remove,
    async ensure({ id, image }, signal) {
      const at = await socket();
      const there = (await find(signal)).filter((found) => found.id === id);
      const [only] = there;
      if (only && there.length === 1 && only.image === image) {
        if (!only.running) await askMoby(at, { method: 'POST', path: `/containers/${only.container}/start` }, signal);
        return;
      }
      await remove(id, signal);
      const body = {
        Image: image,
        Labels: { [ID]: id, [IMAGE]: image },
        HostConfig: { RestartPolicy: { Name: 'always' }, Init: true },
      };
      const made = await askMoby(at, { method: 'POST', path: '/containers/create', body }, signal);
      const container = isObject(made) ? made.Id : undefined;
      if (typeof container !== 'string') throw new RdError('ERR_NOT_FOUND', `moby has no image ${image}`);
      try {
        await askMoby(at, { method: 'POST', path: `/containers/${container}/start` }, signal);
      } catch (error) {
        await remove(id, signal);
        throw error;
      }
    },
  };
}
