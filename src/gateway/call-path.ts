import { gatewayGroup, gatewayVersion } from '../api/gateway/names.ts';
import { isRecordingName } from '../audit/verify/recordings.ts';
import type { RecordingName } from './recording/sink.ts';

export type GatewayCall =
  /** A discovery document, which may not exist. `path` has no slash at the end. */
  | { readonly kind: 'document'; readonly path: string }
  | {
      readonly kind: 'proxy';
      readonly namespace: string;
      readonly grant: string;
      /** Below `proxy`; empty, or with a leading slash. */
      readonly path: string;
      readonly query: URLSearchParams;
    }
  /** The live view of an open session, or a stored recording. */
  | { readonly kind: 'session' | 'recording'; readonly name: RecordingName };

const prefix = `/apis/${gatewayGroup}/${gatewayVersion}/namespaces/`;
const PROXY = /^([a-z0-9-]{1,63})\/grants\/([a-z0-9.-]{1,253})\/proxy(\/.*)?$/;
const VIEW = /^([a-z0-9-]{1,63})\/(session|recording)s\/([^/]+)\/log$/;
const DOCUMENT = /^(\/[a-zA-Z0-9.-]+){1,4}$/;
/** Another parser could resolve a path with one of these to another path. */
const AMBIGUOUS = /[%\\]|\/\/|\/\.|[^\x21-\x7e]/;

/** An ambiguous path is not served: the API server may have authorized another one. */
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
