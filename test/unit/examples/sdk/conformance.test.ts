import { typescriptCandidate } from '../../../support/inventory/candidates.ts';
import { describeConformance } from '../../../support/inventory/conformance.ts';

describeConformance('a component in TypeScript', typescriptCandidate);
