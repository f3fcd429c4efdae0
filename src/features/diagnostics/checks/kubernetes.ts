import { delimiter, join } from 'node:path';
import { readIfThere } from '../../../os/atomic-file.ts';
import type { CheckContext } from '../check.ts';
import { type Check, failed, passed } from '../check.ts';

/** Matches the only relevant line, in YAML or JSON; a whole YAML parser would stay in the service's memory. */
const CURRENT = /^[ \t]*"?current-context"?:[ \t]*["']?([^"'\s,]+)/m;
/** Bytes of a kubeconfig that are read: more than enough for hundreds of clusters. */
const MAX_BYTES = 8 * 1024 * 1024;

/** Checks that kubectl uses our cluster by default. */
export const kubeContext: Check = {
  id: 'KUBE_CONTEXT',
  category: 'Kubernetes',
  applies: ({ hasCluster, settings }) => hasCluster && settings().kubernetes.enabled,
  async run(context) {
    const { integration, contextName } = context;
    if (integration.offBecause !== undefined) {
      return [passed(`The kubectl contexts of the user are left alone, because ${integration.offBecause}.`)];
    }
    const active = await currentContext(context);
    if (active === contextName) return [passed(`The kubectl context \`${active}\` is the active one.`)];
    const now = active === undefined ? 'No kubectl context is' : `The kubectl context \`${active}\` is`;
    return [
      failed(`${now} the active one, so \`kubectl\` does not talk to this cluster.`, [
        { description: `Choose it: \`kubectl config use-context ${contextName}\`` },
      ]),
    ];
  },
};

/** Returns `current-context` of the first file that has one, in the order of kubectl. */
async function currentContext({ env, home }: CheckContext): Promise<string | undefined> {
  const listed = (env.KUBECONFIG ?? '').split(delimiter).filter((file) => file !== '');
  for (const file of listed.length > 0 ? listed : [join(home, '.kube', 'config')]) {
    const content = await readIfThere(file, { follow: true, limit: MAX_BYTES });
    const name = CURRENT.exec(content ?? '')?.[1];
    if (name !== undefined) return name;
  }
  return undefined;
}

/** Checks that the requested version is available. */
export const kubeVersionsAvailable: Check = {
  id: 'KUBE_VERSIONS_AVAILABLE',
  category: 'Kubernetes',
  applies: ({ hasCluster }) => hasCluster,
  followsBackend: true,
  async run({ kubernetesVersions, settings }) {
    const versions = kubernetesVersions();
    const { version } = settings().kubernetes;
    if (versions === undefined || versions.length === 0) {
      return [
        failed('The versions of Kubernetes that can be installed could not be listed.', [
          { description: 'Check the connection to the server of the versions, then restart the service.' },
        ]),
      ];
    }
    if (version === '' || versions.includes(version)) return [passed('The version of Kubernetes can be installed.')];
    return [
      failed(`Kubernetes ${version} is not among the versions that can be installed.`, [
        { description: `Choose another: \`rdctl set --kubernetes.version ${versions[0]}\`` },
      ]),
    ];
  },
};
