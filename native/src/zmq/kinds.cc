#include "zmq/kinds.h"

#include <string>

#include "common/environment.h"
#include "zmq/publisher.h"
#include "zmq/sockets.h"
#include "zmq/subscriber.h"

namespace hydra {
namespace {

std::string libzmq_version() {
    int major = 0;
    int minor = 0;
    int patch = 0;
    zmq_version(&major, &minor, &patch);
    return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(patch);
}

std::string objection(Role role, const Options& options) {
    try {
        if (options.data.secure) {
            static_cast<void>(read_data_keys(role));
        }
        return "";
    } catch (const EnvironmentError& e) {
        return e.what();
    }
}

}  // namespace

void add_zmq_kinds(std::vector<Kind>& kinds) {
    Kind publisher{.name = "zmq-pub", .role = Role::publisher, .versions = {{"libzmq", libzmq_version()}}};
    publisher.open_publisher = [](zmq::context_t& context, const Options& options) {
        return std::make_unique<ZmqPublisher>(context, options);
    };
    publisher.objection = [](const Options& options) { return objection(Role::publisher, options); };
    kinds.push_back(std::move(publisher));

    Kind subscriber{.name = "zmq-sub", .role = Role::subscriber, .versions = {{"libzmq", libzmq_version()}}};
    subscriber.open_subscriber = [](zmq::context_t& context, const Options& options) {
        return std::make_unique<ZmqSubscriber>(context, options);
    };
    subscriber.objection = [](const Options& options) { return objection(Role::subscriber, options); };
    kinds.push_back(std::move(subscriber));
}

}  // namespace hydra
