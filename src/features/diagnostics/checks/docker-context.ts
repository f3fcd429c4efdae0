import { join } from 'node:path';
import { isObject } from '../../../json.ts';
import { readIfThere } from '../../../os/atomic-file.ts';
import { type Check, type Finding, failed, passed } from '../check.ts';
import type { CheckContext } from '../context.ts';
import { configDirectory } from './docker-cli-plugin.ts';

const VARIABLES = ['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG'];

/** The docker command uses our engine by default, and no environment variable overrides that. */
export const dockerContext: Check = {
  id: 'DOCKER_CONTEXT',
  category: 'Container Engine',
  followsSettings: true,
  applies: ({ settings }) => settings().containerEngine.name === 'moby',
  async run(context) {
    const { integration } = context;
    if (integration.offBecause !== undefined) {
      return [
        passed(`The docker contexts of the user are left alone, because ${integration.offBecause}.`, 'DOCKER_CONTEXT'),
      ];
    }
    return [await activeContext(context), ...variables(context)];
  },
};

async function activeContext(context: CheckContext): Promise<Finding> {
  const file = join(configDirectory(context), 'config.json');
  const active = await currentContext(file);
  const desired = context.platform === 'win32' ? 'default' : context.contextName;
  if (active === desired) return passed(`The docker context \`${active}\` is the active one.`, 'DOCKER_CONTEXT');
  return failed(
    active === undefined
      ? `\`${file}\` cannot be understood, so the active docker context is not known.`
      : `The docker context \`${active}\` is the active one, so \`docker\` does not talk to this desktop.`,
    [{ description: `Choose it: \`docker context use ${desired}\`` }],
    'DOCKER_CONTEXT',
  );
}

/** Name of the active context; undefined when the file cannot be parsed. */
async function currentContext(file: string): Promise<string | undefined> {
  let value: unknown;
  try {
    const text = await readIfThere(file, { follow: true });
    if (text === undefined) return 'default';
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  if (!isObject(value)) return undefined;
  const { currentContext: name } = value;
  return typeof name === 'string' && name !== '' ? name : 'default';
}

function variables({ env }: CheckContext): Finding[] {
  return VARIABLES.filter((name) => env[name]).map((name) =>
    failed(
      `The variable \`${name}\` is set where the service was started; in a shell that has it, too, \`docker\` does not follow the context.`,
      [{ description: `Unset it: \`unset ${name}\`` }],
      `DOCKER_CONTEXT_ENV_${name}`,
    ),
  );
}
