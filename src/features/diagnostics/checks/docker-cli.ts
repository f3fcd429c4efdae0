import { constants } from 'node:fs';
import { access, lstat } from 'node:fs/promises';
import { join } from 'node:path';
import { readIfThere } from '../../../os/atomic-file.ts';
import { systemCode } from '../../../os/io-error.ts';
import { findProgram, programPath, shellWord } from '../../../os/program.ts';
import { quoteName } from '../../../settings/printable.ts';
import { type CredentialHelper, credentialHelpers, currentContext } from '../../host-integration/docker-config.ts';
import { type Check, type CheckContext, type Finding, failed, passed } from '../check.ts';

/** Directories in which the docker command looks for plugins, besides the user's. */
const SYSTEM_DIRECTORIES = [
  '/usr/local/lib/docker/cli-plugins',
  '/usr/local/libexec/docker/cli-plugins',
  '/usr/lib/docker/cli-plugins',
  '/usr/libexec/docker/cli-plugins',
];
/** Debian package of each plugin in docker's own archive. */
const PACKAGES: Readonly<Record<string, string>> = {
  'docker-buildx': 'docker-buildx-plugin',
  'docker-compose': 'docker-compose-plugin',
};

/**
 * Checks that the docker command finds this plugin. The compatible application links its own copy into `~/.docker/cli-plugins`; here any copy
 * suffices, because none is shipped.
 */
export function dockerCliPlugin(name: string): Check {
  return {
    id: `RD_BIN_DOCKER_CLI_SYMLINK_${name.toUpperCase()}`,
    category: 'Utilities',
    applies: ({ platform }) => platform !== 'win32',
    async run(context) {
      if ((await findProgram('docker', programPath(context.env.PATH))) === undefined) {
        return [passed('The `docker` command is not installed, so it needs no plugins.')];
      }
      const own = join(configDirectory(context), 'cli-plugins', name);
      const problem = await problemOf(own);
      if (problem !== undefined && problem !== 'is missing') {
        return [failed(`\`${own}\` ${problem}.`, [{ description: `Remove it: \`rm ${shellWord(own)}\`` }])];
      }
      const others = SYSTEM_DIRECTORIES.map((directory) => join(directory, name));
      for (const file of problem === undefined ? [own] : others) {
        if ((await problemOf(file)) === undefined) return [passed(`The \`docker\` command finds \`${file}\`.`)];
      }
      return [
        failed(
          `The \`docker\` command has no plugin \`${name}\`: \`${own}\` is missing, and there is none of the system.`,
          [
            {
              description: `Install it: \`apt-get install ${PACKAGES[name] ?? name}\` from docker's package archive, or put the program there.`,
            },
          ],
        ),
      ];
    },
  };
}

/** Returns the configuration directory of the docker command. */
function configDirectory({ env, home }: CheckContext): string {
  return env.DOCKER_CONFIG || join(home, '.docker');
}

/** Returns the reason why a file is not executable, as the rest of a sentence; undefined when it is. */
async function problemOf(file: string): Promise<string | undefined> {
  try {
    await lstat(file);
  } catch (error) {
    return systemCode(error) === 'ENOENT' ? 'is missing' : `cannot be read (${systemCode(error)})`;
  }
  try {
    await access(file, constants.X_OK);
    return undefined;
  } catch (error) {
    switch (systemCode(error)) {
      case 'ENOENT':
        return 'is a link to a file that is not there';
      case 'ELOOP':
        return 'is a link that leads in a circle';
      default:
        return 'is not executable';
    }
  }
}

const VARIABLES = ['DOCKER_HOST', 'DOCKER_CONTEXT', 'DOCKER_CONFIG'];

/** Checks that the docker command uses our engine by default, and that no environment variable overrides that. */
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
  const active = await selectedContext(file);
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

/** Returns the name of the active context; undefined when the file cannot be parsed. */
async function selectedContext(file: string): Promise<string | undefined> {
  return readIfThere(file, { follow: true })
    .then(currentContext)
    .catch(() => undefined);
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

/** Checks that the credential helpers in `config.json` can be started: without them, all pulls fail, even those of public images. */
export const dockerCredentialHelpers: Check = {
  id: 'DOCKER_CREDENTIAL_HELPERS',
  category: 'Utilities',
  applies: ({ platform }) => platform !== 'win32',
  async run(context) {
    const file = join(configDirectory(context), 'config.json');
    const helpers = await readIfThere(file, { follow: true })
      .then(credentialHelpers)
      // A file that cannot be parsed is a finding of DOCKER_CONTEXT.
      .catch(() => []);
    const searchPath = programPath(context.env.PATH);
    const missing: CredentialHelper[] = [];
    for (const helper of helpers) {
      if ((await findProgram(helper.program, searchPath)) === undefined) missing.push(helper);
    }
    if (missing.length === 0) return [passed('Every program for credentials that `docker` is told to use is there.')];
    return missing.map(({ program, registries }) => missingHelper(file, quoteName(program), registries));
  },
};

function missingHelper(file: string, program: string, registries: readonly string[]): Finding {
  const [key, whose] =
    registries.length === 0
      ? ['credsStore', 'all registries']
      : ['credHelpers', registries.map((name) => quoteName(name)).join(', ')];
  return failed(
    `\`${file}\` names the program ${program} for the credentials of ${whose} (\`${key}\`), and it is not on the \`PATH\`: \`docker login\` and pulls from there fail, also of public images.`,
    [{ description: `Install it, or remove it from \`${key}\` in \`${file}\`.` }],
    program.replaceAll('"', ''),
  );
}
