#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "common/frames.h"

using namespace hydra;

namespace {

std::string framed(const std::string& frame, bool more = false) {
    const FrameLength length = frame_length(frame, more);
    return std::string(length.data(), length.size()) + frame;
}

}  // namespace

TEST_CASE("frames are whole, wherever the stream was cut") {
    const std::string all = framed("one") + framed("two", true) + framed(std::string(300, 'x')) + framed("");
    for (std::size_t cut = 0; cut <= all.size(); ++cut) {
        FrameReader reader;
        std::vector<std::string> frames;
        for (const std::string& part : {all.substr(0, cut), all.substr(cut)}) {
            reader.add(part);
            while (const auto message = reader.take()) {
                frames.push_back(message->first);
                frames.push_back(message->second.value_or("none"));
            }
        }
        REQUIRE(frames == std::vector<std::string>{"one", "none", "two", std::string(300, 'x'), "", "none"});
    }
}

TEST_CASE("a frame that would be too long is the end") {
    FrameReader reader;
    reader.add(framed("one") + "\xff\xff\xff\xff" + framed("two"));
    CHECK(reader.take()->first == "one");
    CHECK_FALSE(reader.broken());
    CHECK_FALSE(reader.take());
    CHECK(reader.broken());
    CHECK_FALSE(reader.take());
}

TEST_CASE("a message has at most two frames") {
    FrameReader reader;
    reader.add(framed("one", true) + framed("two", true) + framed("three"));
    CHECK_FALSE(reader.take());
    CHECK(reader.broken());
}
