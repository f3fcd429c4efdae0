import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type Duplex, duplexPair } from 'node:stream';
import { RdError } from '../../../errors.ts';
import type { ServicePort } from '../../driver.ts';

/** A service of the simulated cluster. Its ports have a number and a name, like those of a real one. */
interface SimulatedService {
  id: string;
  ports: readonly { number: number; name: string; server: Server }[];
}

/** The servers never listen: they speak HTTP on the connections that they are handed. */
const SERVICES: readonly SimulatedService[] = [
  { id: 'default/kubernetes', ports: [{ number: 443, name: 'https', server: createServer(noApiServer) }] },
  { id: 'default/web', ports: [{ number: 80, name: 'http', server: createServer(hello) }] },
];

/** The near end of a connection to a service. Throws `ERR_NOT_FOUND` for one that the simulation does not have. */
export function serviceConnection({ namespace, service, port }: ServicePort): Duplex {
  const id = `${namespace}/${service}`;
  const found = SERVICES.find((each) => each.id === id);
  if (!found) throw new RdError('ERR_NOT_FOUND', `the simulated cluster has no service ${id}`);
  const open = found.ports.find(({ number, name }) => number === port || name === port);
  if (!open) throw new RdError('ERR_NOT_FOUND', `the service ${id} has no port ${port}`);
  const [near, far] = duplexPair();
  // Whoever leaves early must not take the process along, and a pair does not tell one side that the other broke off.
  far.on('error', () => undefined);
  near.once('close', () => far.destroy());
  far.once('close', () => {
    if (!far.writableFinished) near.destroy();
  });
  open.server.emit('connection', far);
  return near;
}

function hello(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain; charset=utf-8' });
  response.end(`simulated web: ${request.method} ${request.url}\n`);
}

/** There is nothing behind it that could speak for a cluster. */
function noApiServer(_request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(400, { 'content-type': 'text/plain; charset=utf-8' });
  response.end('simulated: there is no API server, and no TLS\n');
}
