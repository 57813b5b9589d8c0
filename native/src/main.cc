// hydra-client KIND --group G --first-id N --count C: a group of Hydra clients; see docs/control-protocol.md.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <vector>

#include "common/environment.h"
#include "common/group.h"
#include "common/options.h"
#include "zmq/kinds.h"
#ifdef HYDRA_WITH_KAFKA
#include "kafka/kinds.h"
#endif

namespace {

std::vector<hydra::Kind> offered_kinds() {
    std::vector<hydra::Kind> kinds;
    hydra::add_zmq_kinds(kinds);
#ifdef HYDRA_WITH_KAFKA
    hydra::add_kafka_kinds(kinds);
#endif
    return kinds;
}

std::vector<std::string> names(const std::vector<hydra::Kind>& kinds) {
    std::vector<std::string> all;
    std::ranges::transform(kinds, std::back_inserter(all), &hydra::Kind::name);
    return all;
}

int run(int argc, char** argv) {
    const std::vector<hydra::Kind> kinds = offered_kinds();
    const hydra::Options options = hydra::parse_options(argc, argv, names(kinds));
    const hydra::Kind& kind = *std::ranges::find(kinds, options.kind, &hydra::Kind::name);
    const hydra::Environment environment = hydra::read_environment();
    if (const std::string objection = kind.objection ? kind.objection(options) : ""; !objection.empty()) {
        throw hydra::EnvironmentError(objection);
    }
    return hydra::run_group(kind, options, environment);
}

}  // namespace

int main(int argc, char** argv) {
    try {
        return run(argc, argv);
    } catch (const hydra::EnvironmentError& e) {
        std::fprintf(stderr, "hydra-client: %s\n", e.what());
        return hydra::kExitUsage;
    } catch (const std::exception& e) {
        std::fprintf(stderr, "hydra-client: %s\n", e.what());
        return 1;
    }
}
