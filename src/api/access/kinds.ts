import type { Kind } from '../schema/kind.ts';
import { execAccessRequestKind } from './exec-access-request.ts';
import { execAccessTemplateKind } from './exec-access-template.ts';
import { podAccessRequestKind } from './pod-access-request.ts';
import { podAccessTemplateKind } from './pod-access-template.ts';

/** The kinds of the access half, in the order in which their CRDs are installed. */
export const accessKinds: readonly Kind[] = [
  podAccessTemplateKind,
  podAccessRequestKind,
  execAccessTemplateKind,
  execAccessRequestKind,
];
