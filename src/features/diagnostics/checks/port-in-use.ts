import { connect } from 'node:net';
import { PRODUCT } from '../../../product.ts';
import { type Check, type Finding, failed, passed } from '../check.ts';
import type { CheckContext } from '../context.ts';

/** The ports that clients use for us are ours. */
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
  if (api.asked || api.port === PRODUCT.defaultPort) return passed(`The API has its port ${api.port}.`, 'API');
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
  // A running cluster owns the port itself; so may one that was not observed yet.
  if (cluster.state === 'running' && cluster.spec.port === port) {
    return [passed(`The cluster has its port ${port}.`, 'KUBERNETES')];
  }
  if (cluster.state === 'unknown' || cluster.state === 'unresponsive') return [];
  if (!(await answers(port, signal))) return [passed(`Port ${port} is free for the cluster.`, 'KUBERNETES')];
  return [
    failed(
      `Another program has port ${port} of this computer, which the cluster needs.`,
      [{ description: 'Stop that program, or give the cluster another port: `rdctl set --kubernetes.port 6444`.' }],
      'KUBERNETES',
    ),
  ];
}

/** True when a program accepts connections there. */
function answers(port: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', signal });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
