import type { StatusCause } from '../api/object.ts';
import { CodedError, quote } from '../kit/errors.ts';
import { isRecord, own } from '../kit/json-value.ts';
import { cutInTheMiddle } from '../kit/shorten.ts';
import type { AdmissionPatchOp } from './json-patch.ts';

const API_VERSION = 'admission.k8s.io/v1';
const KIND = 'AdmissionReview';
/** Characters; a UUID has 36. */
const MAX_UID = 64;

const operations = ['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const;
export type Operation = (typeof operations)[number];

/** As the API server authenticated it. `username` may be empty: each handler decides. */
export interface UserInfo {
  readonly username: string;
  readonly uid: string;
  readonly groups: readonly string[];
  readonly extra: Readonly<Record<string, readonly string[]>>;
}

/** `object` and `oldObject` are untrusted, of any shape: read only own properties. */
export interface Review {
  readonly uid: string;
  readonly operation: Operation;
  readonly kind: { readonly group: string; readonly version: string; readonly kind: string };
  readonly resource: { readonly group: string; readonly version: string; readonly resource: string };
  /** Empty for the object itself. */
  readonly subResource: string;
  /** Empty on a DELETE of a collection, and on a CREATE with generateName (mutating webhooks). */
  readonly name: string;
  readonly namespace: string;
  readonly user: UserInfo;
  /** After the operation, or the options of a CONNECT. Undefined on DELETE. */
  readonly object: unknown;
  /** Before the operation. Undefined on CREATE and CONNECT. */
  readonly oldObject: unknown;
  readonly dryRun: boolean;
}

/** `response` of an AdmissionReview, without `uid` and encoding. */
export interface Answer {
  readonly allowed: boolean;
  readonly status?: {
    readonly code: number;
    readonly reason: string;
    readonly message: string;
    readonly details: { readonly causes: readonly StatusCause[] };
  };
  readonly patch?: readonly AdmissionPatchOp[];
  readonly warnings?: readonly string[];
  readonly auditAnnotations?: Readonly<Record<string, string>>;
}

/** @throws CodedError `InvalidReview` with the field, the found value, and the allowed one. */
export function decodeReview(body: unknown): Review {
  expectText(body, 'apiVersion', API_VERSION);
  expectText(body, 'kind', KIND);
  const request = objectField(body, 'request', '');
  const uid = textField(request, 'uid', 'request.');
  if (uid === '') throw invalid('request.uid is missing; an AdmissionReview needs one');
  if (uid.length > MAX_UID) throw invalid(`request.uid has ${uid.length} characters; at most ${MAX_UID} are allowed`);
  return {
    uid,
    operation: operationOf(request),
    kind: typeField(request, 'kind'),
    resource: typeField(request, 'resource'),
    subResource: textField(request, 'subResource', 'request.'),
    name: textField(request, 'name', 'request.'),
    namespace: textField(request, 'namespace', 'request.'),
    user: userOf(request),
    object: own(request, 'object') ?? undefined,
    oldObject: own(request, 'oldObject') ?? undefined,
    dryRun: booleanField(request, 'dryRun'),
  };
}

export function encodeAnswer(uid: string, answer: Answer): unknown {
  const { allowed, status, patch, warnings, auditAnnotations } = answer;
  const patched = patch !== undefined && patch.length > 0;
  return {
    apiVersion: API_VERSION,
    kind: KIND,
    response: {
      uid,
      allowed,
      status,
      patchType: patched ? 'JSONPatch' : undefined,
      patch: patched ? Buffer.from(JSON.stringify(patch)).toString('base64') : undefined,
      warnings: warnings && warnings.length > 0 ? withinLimits(warnings) : undefined,
      auditAnnotations,
    },
  };
}

/** Characters of all webhooks. Beyond it, the API server cuts each warning, and drops the last. */
const MAX_WARNINGS = 4096;
/** The API server then cuts each warning to this length. */
const MAX_CUT_WARNING = 256;

/** Cuts each in the middle, so that its remedy stays, and counts what does not fit. */
function withinLimits(warnings: readonly string[]): readonly string[] {
  if (warnings.join('').length <= MAX_WARNINGS) return warnings;
  const kept: string[] = [];
  let left = MAX_WARNINGS - 'more warnings: NNNNN'.length;
  for (const warning of warnings) {
    const cut = cutInTheMiddle(warning, MAX_CUT_WARNING);
    if (cut.length > left) return [...kept, `more warnings: ${warnings.length - kept.length}`];
    kept.push(cut);
    left -= cut.length;
  }
  return kept;
}

function operationOf(request: unknown): Operation {
  const found = own(request, 'operation');
  const operation = operations.find((candidate) => candidate === found);
  if (!operation)
    throw invalid(`request.operation must be one of ${operations.join(', ')}; found ${describeValue(found)}`);
  return operation;
}

function typeField<K extends 'kind' | 'resource'>(
  request: unknown,
  field: K,
): { group: string; version: string } & Record<K, string> {
  const found = objectField(request, field, 'request.');
  const at = `request.${field}.`;
  const kindOrResource = { [field]: textField(found, field, at) } as Record<K, string>;
  return { group: textField(found, 'group', at), version: textField(found, 'version', at), ...kindOrResource };
}

function userOf(request: unknown): UserInfo {
  const found = objectField(request, 'userInfo', 'request.');
  const at = 'request.userInfo.';
  return {
    username: textField(found, 'username', at),
    uid: textField(found, 'uid', at),
    groups: textsField(found, 'groups', at),
    extra: extraOf(found),
  };
}

function extraOf(user: unknown): Record<string, readonly string[]> {
  const found = own(user, 'extra') ?? undefined;
  if (found === undefined) return {};
  const extra = objectField(user, 'extra', 'request.userInfo.');
  return Object.fromEntries(Object.keys(extra).map((key) => [key, textsField(extra, key, 'request.userInfo.extra.')]));
}

function objectField(parent: unknown, field: string, at: string): object {
  const found = own(parent, field);
  if (isRecord(found)) return found;
  throw invalid(`${at}${field} must be an object; found ${describeValue(found)}`);
}

/** Absent and null count as empty, as in Go. */
function textField(parent: unknown, field: string, at: string): string {
  const found = own(parent, field) ?? '';
  if (typeof found === 'string') return found;
  throw invalid(`${at}${field} must be a string; found ${describeValue(found)}`);
}

function textsField(parent: unknown, field: string, at: string): readonly string[] {
  const found = own(parent, field) ?? [];
  if (Array.isArray(found) && found.every((item) => typeof item === 'string')) return found;
  throw invalid(`${at}${field} must be a list of strings; found ${describeValue(found)}`);
}

function booleanField(parent: unknown, field: string): boolean {
  const found = own(parent, field) ?? false;
  if (typeof found === 'boolean') return found;
  throw invalid(`request.${field} must be true or false; found ${describeValue(found)}`);
}

function expectText(body: unknown, field: string, wanted: string): void {
  const found = own(body, field);
  if (found !== wanted) throw invalid(`${field} must be ${quote(wanted)}; found ${describeValue(found)}`);
}

function describeValue(found: unknown): string {
  if (found === undefined) return 'nothing';
  if (found === null) return 'null';
  if (Array.isArray(found)) return 'a list';
  if (typeof found === 'string') return quote(found);
  return typeof found === 'object' ? 'an object' : String(found);
}

function invalid(message: string): CodedError {
  return new CodedError('InvalidReview', message);
}
