import type { Duplex } from 'node:stream';
import { RdError } from '../../../errors.ts';
import { isObject } from '../../../json.ts';
import type { ServicePort } from '../../driver.ts';
import type { Shell } from '../../shell.ts';
import type { ApiClient } from './api.ts';

/** A pod address, as seen from the machine. */
interface PodAddress {
  host: string;
  port: number;
}

/**
 * A connection to a pod that serves the port now. The pod is resolved through the API and dialed from the machine, which is a node of the
 * pod network. Errors as `ClusterDriver.connect`.
 */
export async function connectService(
  api: ApiClient,
  shell: Pick<Shell, 'dial'>,
  target: ServicePort,
  signal: AbortSignal,
): Promise<Duplex> {
  const { namespace, service, port } = target;
  const id = `${namespace}/${service}`;
  const base = `namespaces/${encodeURIComponent(namespace)}`;
  const found = await ask(api, `/api/v1/${base}/services/${encodeURIComponent(service)}`, signal);
  if (found === undefined) throw new RdError('ERR_NOT_FOUND', `the cluster has no service ${id}`);
  const selector = encodeURIComponent(`kubernetes.io/service-name=${service}`);
  const slices = await ask(api, `/apis/discovery.k8s.io/v1/${base}/endpointslices?labelSelector=${selector}`, signal);
  const name = portName(found, port) ?? podPortName(slices ?? {}, port);
  if (name === undefined) throw new RdError('ERR_NOT_FOUND', `the service ${id} has no TCP port ${port}`);
  const addresses = readyAddresses(slices ?? {}, name);
  let failure: unknown;
  for (const { host, port: at } of addresses) {
    try {
      return await shell.dial(host, at, signal);
    } catch (error) {
      if (signal.aborted) throw error;
      failure = error;
    }
  }
  const why = addresses.length > 0 ? 'none of its pods takes the connection' : 'none of its pods is ready';
  throw new RdError('ERR_NOT_READY', `nothing serves port ${port} of the service ${id}: ${why}`, { cause: failure });
}

/**
 * The name of a service port (`''` for an unnamed one): by name, by number, else by the target port, which the compatible application uses.
 */
function portName(service: object, wanted: number | string): string | undefined {
  const spec = isObject(service) && isObject(service.spec) ? service.spec : {};
  const ports = (Array.isArray(spec.ports) ? spec.ports : []).flatMap((port) =>
    isObject(port) && (port.protocol === undefined || port.protocol === 'TCP') ? [port] : [],
  );
  const found =
    ports.find(({ name }) => name === wanted) ??
    ports.find(({ port }) => port === wanted) ??
    ports.find(({ targetPort }) => typeof wanted === 'number' && targetPort === wanted);
  if (!found) return undefined;
  return typeof found.name === 'string' ? found.name : '';
}

/** The same by a target port that the service names and does not number. */
function podPortName(list: object, wanted: number | string): string | undefined {
  const slices = isObject(list) && Array.isArray(list.items) ? list.items : [];
  const found = slices
    .flatMap((slice) => (isObject(slice) && Array.isArray(slice.ports) ? slice.ports : []))
    .find((port) => isObject(port) && port.port === wanted && (port.protocol ?? 'TCP') === 'TCP');
  return isObject(found) ? String(found.name ?? '') : undefined;
}

/** The ready addresses in an EndpointSliceList for the port of that name. */
function readyAddresses(list: object, name: string): PodAddress[] {
  const slices = isObject(list) && Array.isArray(list.items) ? list.items : [];
  return slices.flatMap((slice): PodAddress[] => {
    if (!isObject(slice) || (slice.addressType !== 'IPv4' && slice.addressType !== 'IPv6')) return [];
    const ports = (Array.isArray(slice.ports) ? slice.ports : []).flatMap((port) =>
      isObject(port) && (port.name ?? '') === name && typeof port.port === 'number' ? [port.port] : [],
    );
    const hosts = (Array.isArray(slice.endpoints) ? slice.endpoints : []).flatMap((endpoint) => {
      if (!isObject(endpoint) || !Array.isArray(endpoint.addresses)) return [];
      // An absent condition counts as ready.
      const isReady = !isObject(endpoint.conditions) || endpoint.conditions.ready !== false;
      const [first] = endpoint.addresses;
      return isReady && typeof first === 'string' ? [first] : [];
    });
    return hosts.flatMap((host) => ports.map((port) => ({ host, port })));
  });
}

/** Undefined for what is not there. */
async function ask(api: ApiClient, path: string, signal: AbortSignal): Promise<object | undefined> {
  const { status, text } = await api.get(path, signal);
  if (status === 404) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    value = undefined;
  }
  if (status === 200 && isObject(value)) return value;
  throw new RdError('ERR_NOT_READY', `the API server says ${status} to ${path.split('?')[0]}`);
}
