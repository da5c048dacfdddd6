import { gatewayGroup, gatewayVersion } from '../api/gateway/names.ts';
import { isRecordingName } from '../audit/verify/recordings.ts';
import type { RecordingName } from './recording/sink.ts';

/** A call of the aggregated API. */
export type GatewayCall =
  /** A discovery document of the API, which may not exist. `path` has no slash at the end. */
  | { readonly kind: 'document'; readonly path: string }
  /** A call below `grants/NAME/proxy`. */
  | {
      readonly kind: 'proxy';
      readonly namespace: string;
      readonly grant: string;
      /** The path below `proxy`; empty, or with a leading slash. */
      readonly path: string;
      readonly query: URLSearchParams;
    }
  /** The live view of an open session, or a stored recording. */
  | { readonly kind: 'session' | 'recording'; readonly name: RecordingName };

const prefix = `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/`;
const PROXY = /^([a-z0-9-]{1,63})\/grants\/([a-z0-9.-]{1,253})\/proxy(\/.*)?$/;
const VIEW = /^([a-z0-9-]{1,63})\/(session|recording)s\/([^/]+)\/log$/;
const DOCUMENT = /^(\/[a-zA-Z0-9.-]+){1,4}$/;
/**
 * A percent sign, a backslash, an empty segment, a segment that begins with a dot, or a character outside of printable ASCII. Another
 * parser could resolve a path with one of these to another path.
 */
const AMBIGUOUS = /[%\\]|\/\/|\/\.|[^\x21-\x7e]/;

/**
 * Parses `target`, the path and query of a call as the API server sent them. Returns undefined if the gateway does not serve the path. Also
 * returns undefined for a path that two parsers could understand differently: the API server may have checked the caller's permission for
 * another path.
 */
export function readCall(target: string): GatewayCall | undefined {
  const question = target.indexOf('?');
  const path = question < 0 ? target : target.slice(0, question);
  if (AMBIGUOUS.test(path)) return undefined;
  if (path.startsWith(prefix)) {
    const match = PROXY.exec(path.slice(prefix.length));
    if (!match) return readViewCall(path.slice(prefix.length));
    const [, namespace = '', grant = '', rest = ''] = match;
    const query = new URLSearchParams(question < 0 ? '' : target.slice(question + 1));
    return { kind: 'proxy', namespace, grant, path: rest === '/' ? '' : rest, query };
  }
  return DOCUMENT.test(path) ? { kind: 'document', path } : undefined;
}

function readViewCall(path: string): GatewayCall | undefined {
  const [, namespace = '', kind, session = ''] = VIEW.exec(path) ?? [];
  if (!isRecordingName(namespace, session)) return undefined;
  return { kind: kind === 'session' ? 'session' : 'recording', name: { namespace, session } };
}
