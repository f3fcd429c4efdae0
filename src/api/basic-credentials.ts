/**
 * Parses the user and password of HTTP Basic authentication (RFC 7617); returns undefined for any other header. Like the compatible application, it
 * ignores anything after the credentials.
 */
export function basicCredentials(header: string | undefined): { user: Buffer; password: Buffer } | undefined {
  const encoded = /^basic +(\S+)/i.exec(header?.trim() ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const decoded = Buffer.from(encoded, 'base64');
  const colon = decoded.indexOf(':');
  return colon < 0 ? undefined : { user: decoded.subarray(0, colon), password: decoded.subarray(colon + 1) };
}
