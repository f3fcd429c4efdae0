import { arch, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { layerFacts } from '../../profiles/policies/policy.ts';
import { explainSection, explainSetting } from '../../src/client/explain.ts';
import { layersOfApplication, layersOfService, settingLayers } from '../../src/client/layers.ts';
import { storedSettings } from '../../src/client/offline.ts';
import { settingNamed } from '../../src/client/setting-name.ts';
import type { JsonObject } from '../../src/json.ts';
import type { SettingLayers } from '../../src/plan/layers.ts';
import type { Host } from '../../src/settings/defaults.ts';
import { FIELDS } from '../../src/settings/fields.gen.ts';
import { recordedFirstRun } from '../../src/state/state-file.ts';
import { supportedPlatform, usage } from '../arguments/values.ts';
import { defineCommand, type FlagTable, type Invocation, type Io } from '../command.ts';
import { homeOf } from '../session/absence.ts';
import { policiesOf } from '../session/policies.ts';
import { runningService } from '../session/service.ts';
import { OUTPUT_FLAG } from '../views/choose.ts';
import { explanationText, sectionText } from '../views/explanation-text.ts';
import { style } from '../views/style.ts';

/** Accepts the flags of `set`, so that a setting can be pasted with its hyphens. */
const NAMES: FlagTable = Object.fromEntries(
  FIELDS.flatMap(({ flag, path }) =>
    flag ? [[flag.name, { type: 'boolean', summary: path, aliases: flag.aliases, hidden: true }]] : [],
  ),
);

export const explain = defineCommand({
  name: 'explain',
  summary: 'Show where a setting has its value from, and who decides',
  usage: '[SETTING|SECTION]',
  description: `Prints every layer (built-in default, defaults profile of the administrator, stored settings, locked profile), which one
wins and where it comes from; then what the setting takes, what a change costs and what the driver does with it.
A section, or nothing, lists settings. With no service running it tells what the next start would take. Secrets are masked.
Exit codes: 0 told; 1 no such setting, or failed; 3 a deployment profile cannot be used.`,
  flags: { ...NAMES, output: OUTPUT_FLAG },
  classic: false,
  async run(invocation) {
    const { args, flags, given, io } = invocation;
    const names = [...args, ...given.map(({ name }) => name).filter((name) => Object.hasOwn(NAMES, name))];
    if (names.length > 1) throw usage('explain takes one setting or section');
    const meant = settingNamed(names[0] ?? '');
    const { layers, running } = await findLayers(invocation);
    const print = (document: unknown) => io.out(`${JSON.stringify(document, null, 2)}\n`);
    const paint = style(io.color);
    if ('section' in meant) {
      const section = explainSection(meant.section, layers);
      if (flags.output === 'json') print(section);
      else io.out(sectionText(section, paint));
      return 0;
    }
    const explanation = explainSetting(meant.field, layers);
    if (flags.output === 'json') {
      print(explanation);
      return 0;
    }
    const chosen = meant.field.path === 'kubernetes.version' && explanation.value === '' ? running : undefined;
    io.out(explanationText(explanation, chosen === undefined ? [] : [`The service chose ${chosen}.`], paint));
    return 0;
  },
});

type Caller = Pick<Invocation, 'connect' | 'globals' | 'io'>;

interface FoundLayers {
  layers: SettingLayers;
  /** Version of the running cluster. */
  running?: string;
}

/** The layers of settings: from the service, another application, or the files. */
async function findLayers(invocation: Caller): Promise<FoundLayers> {
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
