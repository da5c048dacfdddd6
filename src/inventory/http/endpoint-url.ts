import { reconcilePath } from '../../api/inventory/contract/request.ts';
import type { Registration } from '../registration.ts';

const loopback = /^(127\.0\.0\.1|localhost|\[::1\])$/;

/** Where a component is called; an error for what may not be called. A component in this process has no URL. */
export function endpointUrl(
  { endpoint }: Registration,
  allowLoopbackHttp: boolean,
): { readonly url: URL } | { readonly error: string } {
  const { service, url } = endpoint;
  if (service)
    return { url: new URL(`https://${service.name}.${service.namespace}.svc:${service.port}${reconcilePath}`) };
  const base = url === undefined ? undefined : url.replace(/\/+$/, '');
  if (base === undefined || !URL.canParse(`${base}${reconcilePath}`)) return { error: 'the endpoint is no URL' };
  const parsed = new URL(`${base}${reconcilePath}`);
  if (parsed.username || parsed.password || parsed.search || parsed.hash) {
    return { error: 'the URL of the endpoint may hold no user, query or fragment' };
  }
  if (parsed.protocol === 'https:') return { url: parsed };
  if (parsed.protocol !== 'http:' || !loopback.test(parsed.hostname)) {
    return { error: 'the endpoint must be https; plain http is for loopback addresses alone' };
  }
  return allowLoopbackHttp
    ? { url: parsed }
    : { error: 'plain http needs a server that allows it: start it with --allow-loopback-http' };
}

/** Whether a URL of callbacks may be served without TLS. */
export const isLoopbackHttp = (text: string): boolean =>
  URL.canParse(text) && new URL(text).protocol === 'http:' && loopback.test(new URL(text).hostname);
