/**
 * User and password of HTTP Basic authentication (RFC 7617); undefined for any other header. What follows the credentials is ignored, as by
 * the compatible application.
 */
export function basicCredentials(header: string | undefined): { user: Buffer; password: Buffer } | undefined {
  const encoded = /^basic +(\S+)/i.exec(header?.trim() ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64');
  const colon = decoded.indexOf(':');
  return colon < 0 ? undefined : { user: decoded.subarray(0, colon), password: decoded.subarray(colon + 1) };
}
