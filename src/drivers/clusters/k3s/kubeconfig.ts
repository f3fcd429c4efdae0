import { createPublicKey } from 'node:crypto';
import { isObject } from '../../../json.ts';
import { parseDocument } from '../../../settings/parse.ts';

/** Maximum size of the kubeconfig that k3s writes, which has about three thousand characters. */
const MAX_CHARACTERS = 64 * 1024;

/** Administrator credentials for the API. All but the first are secret. PEM texts. */
export interface Credentials {
  ca: string;
  cert: string;
  key: string;
}

/** Parses the kubeconfig that k3s writes; undefined while it is incomplete, and for a file that k3s did not write. */
export function readCredentials(text: string): Credentials | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const { value, findings } = parseDocument(text, '');
  if (findings.length > 0) return undefined;
  if (!isObject(value)) return undefined;
  const cluster = innerOf(value.clusters, 'cluster');
  const user = innerOf(value.users, 'user');
  const ca = pem(cluster?.['certificate-authority-data']);
  const cert = pem(user?.['client-certificate-data']);
  const key = pem(user?.['client-key-data']);
  if (ca === undefined || cert === undefined || key === undefined || !isCertificate(ca)) return undefined;
  return { ca, cert, key };
}

/** A kubeconfig for programs of this host, as JSON, which is YAML. Cluster, user and context share one name. */
export function hostKubeconfig({ ca, cert, key }: Credentials, port: number, name: string): string {
  const data = (text: string) => Buffer.from(text, 'utf8').toString('base64');
  const value = {
    apiVersion: 'v1',
    kind: 'Config',
    clusters: [{ cluster: { 'certificate-authority-data': data(ca), server: `https://127.0.0.1:${port}` }, name }],
    contexts: [{ context: { cluster: name, user: name }, name }],
    'current-context': name,
    users: [{ name, user: { 'client-certificate-data': data(cert), 'client-key-data': data(key) } }],
  };
  return `${JSON.stringify(value, undefined, 2)}\n`;
}

function innerOf(list: unknown, key: string) {
  const item: unknown = Array.isArray(list) ? list[0] : undefined;
  const inner = isObject(item) ? item[key] : undefined;
  return isObject(inner) ? inner : undefined;
}

function pem(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined;
  const text = Buffer.from(value, 'base64').toString('utf8');
  return text.includes('-----BEGIN ') ? text : undefined;
}

function isCertificate(text: string): boolean {
  if (!text.includes('-----BEGIN CERTIFICATE-----')) return false;
  try {
    createPublicKey(text);
    return true;
  } catch {
    return false;
  }
}
