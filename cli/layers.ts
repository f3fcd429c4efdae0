import { arch, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { layerFacts } from '../profiles/policies/policy.ts';
import { layersOfApplication, layersOfService, settingLayers } from '../src/client/layers.ts';
import { storedSettings } from '../src/client/offline.ts';
import type { JsonObject } from '../src/json.ts';
import type { SettingLayers } from '../src/plan/layers.ts';
import type { Host } from '../src/settings/defaults.ts';
import { recordedFirstRun } from '../src/storage/first-run.ts';
import { homeOf } from './absence.ts';
import type { Invocation, Io } from './command.ts';
import { supportedPlatform } from './platform.ts';
import { policiesOf } from './policies.ts';
import { runningService } from './service.ts';

type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

export interface FoundLayers {
  layers: SettingLayers;
  /** Version of the cluster that runs. */
  running?: string;
}

/** The layers of settings, from whoever can tell: the service, another application that was found, or the files. */
export async function findLayers(invocation: Caller): Promise<FoundLayers> {
  const { io } = invocation;
  const platform = supportedPlatform(io.platform);
  const host: Host = { platform, arch: arch(), osRelease: release(), memoryBytes: totalmem() };
  const service = await runningService(invocation);
  if (!service) return { layers: await layersOfFiles(io, host) };
  if (service.client.foreign) {
    const { client } = service;
    const facts = layerFacts(await policiesOf(io, host), { host, settingsFile: '' });
    return { layers: await layersOfApplication(client, facts, io.signal) };
  }
  const { cluster } = service.status;
  return {
    layers: await layersOfService(service.client, io.signal),
    ...(cluster.state === 'running' ? { running: cluster.installedVersion } : {}),
  };
}

async function layersOfFiles(io: Io, host: Host): Promise<SettingLayers> {
  const where = homeOf(io);
  const policies = await policiesOf(io, host);
  const next = await storedSettings(where, host.platform, host, policies);
  const stored = await storedSettings(where, host.platform, host);
  const firstRun = await recordedFirstRun(join(where.state, 'first-run.json'));
  const facts = layerFacts(policies, { host, settingsFile: where.settingsFile, ...(firstRun ? { firstRun } : {}) });
  const kept: { stored?: JsonObject } = stored.from === 'file' ? { stored: stored.settings } : {};
  return settingLayers(facts, { basis: 'files', inForce: next.settings, ...kept });
}
