import { createHmac } from 'node:crypto';

/** Of `whsec_` and base64, 24 to 64 bytes; undefined if it is anything else. */
export function parseSigningKey(text: string): Buffer | undefined {
  const [, encoded = ''] = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(text) ?? [];
  const key = Buffer.from(encoded, 'base64');
  return key.length >= 24 && key.length <= 64 && key.toString('base64') === encoded ? key : undefined;
}

/** The headers of Standard Webhooks 1.0, with a signature by each key. */
export function signedHeaders(
  { id, atMs, body }: { readonly id: string; readonly atMs: number; readonly body: string },
  keys: readonly Buffer[],
): Record<string, string> {
  const timestamp = String(Math.floor(atMs / 1000));
  const signature = (key: Buffer): string =>
    `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  return {
    'webhook-id': id,
    'webhook-timestamp': timestamp,
    'webhook-signature': keys.map(signature).join(' '),
  };
}
