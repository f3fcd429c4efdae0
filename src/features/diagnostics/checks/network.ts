import { acceptsConnections } from '../../../os/socket.ts';
import { PRODUCT } from '../../../product.ts';
import { type Check, type CheckContext, type Finding, failed, passed } from '../check.ts';
import { probe } from '../http-probe.ts';

/** Checks that an Internet server responds, with any status. The request goes directly, without a proxy. */
export const connectedToInternet: Check = {
  id: 'CONNECTED_TO_INTERNET',
  category: 'Networking',
  applies: () => true,
  async run({ connectivityUrl, settings }, signal) {
    const { timeout } = settings().diagnostics.connectivity;
    const { host } = new URL(connectivityUrl);
    try {
      await probe('HEAD', connectivityUrl, AbortSignal.any([signal, AbortSignal.timeout(timeout)]));
      return [passed(`The application can reach the Internet: ${host} answers.`)];
    } catch (error) {
      // The run was canceled, so the result is unknown.
      if (signal.aborted) throw error;
      return [
        failed(`The application cannot reach the Internet: ${host} did not answer (${reasonOf(error, timeout)}).`, [
          { description: 'Check the network connection, the name server and the firewall of this computer.' },
        ]),
      ];
    }
  },
};

function reasonOf(error: unknown, timeout: number): string {
  if (!(error instanceof Error)) return String(error);
  if (error.name === 'TimeoutError' || error.name === 'AbortError') return `nothing within ${timeout} ms`;
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined;
  return code ?? error.message;
}

/** Checks that the ports at which clients expect us are not used by other programs. */
export const portInUse: Check = {
  id: 'PORT_IN_USE',
  category: 'Networking',
  applies: () => true,
  followsBackend: true,
  async run(context, signal) {
    return [apiPort(context), ...(await clusterPort(context, signal))];
  },
};

function apiPort({ api }: CheckContext): Finding {
  if (api.requested || api.port === PRODUCT.defaultPort) return passed(`The API has its port ${api.port}.`, 'API');
  return failed(
    `Another program had port ${PRODUCT.defaultPort} when the service started; the API listens on ${api.port}. Clients that do not read the connection file will not find it.`,
    [
      {
        description: `Stop that program (\`ss -ltnp sport = :${PRODUCT.defaultPort}\` names it on Linux), then \`rdctl shutdown\` and \`rdctl start\`.`,
      },
    ],
    'API',
  );
}

async function clusterPort(context: CheckContext, signal: AbortSignal): Promise<Finding[]> {
  const { enabled, port } = context.settings().kubernetes;
  if (!context.hasCluster || !enabled) return [];
  const { cluster } = context.status();
  // A running cluster owns the port; so may one that was not observed yet.
  if (cluster.state === 'running' && cluster.spec.port === port) {
    return [passed(`The cluster has its port ${port}.`, 'KUBERNETES')];
  }
  if (cluster.state === 'unknown' || cluster.state === 'unresponsive') return [];
  if (!(await acceptsConnections({ port, host: '127.0.0.1' }, signal)))
    return [passed(`Port ${port} is free for the cluster.`, 'KUBERNETES')];
  return [
    failed(
      `Another program has port ${port} of this computer, which the cluster needs.`,
      [{ description: 'Stop that program, or give the cluster another port: `rdctl set --kubernetes.port 6444`.' }],
      'KUBERNETES',
    ),
  ];
}
