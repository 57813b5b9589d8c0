#include "mqtt/control_messages.h"

#include <algorithm>
#include <random>

#include "common/system_object.h"

namespace hydra {

MqttStep step_of(const Configure& command) {
    return read_system<MqttStep>(command.system);
}

std::string topic_of(const MqttStep& step, Id publisher) {
    return step.topic + "/" + std::to_string(publisher);
}

std::string signals_of(const MqttStep& step, Id publisher) {
    return topic_of(step, publisher) + (step.shared ? "/signals" : "");
}

std::vector<std::string> filters(const MqttStep& step, const std::string& group,
                                 const std::vector<PublisherEndpoint>& publishers) {
    if (step.shared && group.empty()) {
        throw TransportError("configure.group is empty, but shared subscriptions need a group");
    }
    std::vector<std::string> all;
    for (const PublisherEndpoint& it : publishers) {
        if (step.shared) {
            all.push_back("$share/" + group + "/" + topic_of(step, it.publisher));
        }
        all.push_back(signals_of(step, it.publisher));
    }
    return all;
}

std::string new_client_name(const MqttStep& step) {
    std::random_device random;
    std::string name = step.topic;
    std::ranges::replace(name, '/', '-');
    return name + "-" + std::to_string(random()) + "-" + std::to_string(random());
}

}  // namespace hydra
